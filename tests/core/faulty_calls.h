/* Included before all else into the extensions in C: each of their calls into Python that may fail for want of memory can
be made to, one at a time. `fail_after` and `asked` are as in tests/xla/faulty_memory.cc, one pair for each extension. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

static long faults_left = -1, faults_made;

__attribute__((visibility("default"))) void fail_after(long count) {
    faults_made = 0;
    faults_left = count;
}
__attribute__((visibility("default"))) long asked(void) { return faults_made; }

static int fails(void) {
    faults_made++;
    return faults_left >= 0 && faults_left-- == 0;
}
static int fails_with_error(void) {
    if (!fails()) return 0;
    PyErr_NoMemory();
    return 1;
}

#define OR_NULL(call) (fails_with_error() ? NULL : call)
#define OR_MINUS_ONE(call) (fails_with_error() ? -1 : call)

#undef PyMem_New
#define PyMem_New(type, n) (fails() ? NULL : (type *)(PyMem_Malloc)((n) * sizeof(type)))
#define PyMem_Malloc(n) (fails() ? NULL : (PyMem_Malloc)(n))
#define PyMem_Calloc(n, size) (fails() ? NULL : (PyMem_Calloc)(n, size))
#define tp_alloc(type, n) tp_dealloc == NULL || fails_with_error() ? NULL : (type)->tp_alloc(type, n)
#define tp_new(type, args, kwargs) tp_dealloc == NULL || fails_with_error() ? NULL : PyTuple_Type.tp_new(type, args, kwargs)

#define PyDict_DelItem(...) OR_MINUS_ONE(PyDict_DelItem(__VA_ARGS__))
#define PyDict_GetItemWithError(...) OR_NULL(PyDict_GetItemWithError(__VA_ARGS__))
#define PyDict_New(...) OR_NULL(PyDict_New(__VA_ARGS__))
#define PyDict_SetItem(...) OR_MINUS_ONE(PyDict_SetItem(__VA_ARGS__))
#define PyIter_Next(...) OR_NULL(PyIter_Next(__VA_ARGS__))
#define PyList_Append(...) OR_MINUS_ONE(PyList_Append(__VA_ARGS__))
#define PyList_GetSlice(...) OR_NULL(PyList_GetSlice(__VA_ARGS__))
#define PyList_New(...) OR_NULL(PyList_New(__VA_ARGS__))
#define PyList_SetSlice(...) OR_MINUS_ONE(PyList_SetSlice(__VA_ARGS__))
#define PyLong_FromLong(...) OR_NULL(PyLong_FromLong(__VA_ARGS__))
#define PyLong_FromSsize_t(...) OR_NULL(PyLong_FromSsize_t(__VA_ARGS__))
#define PyLong_FromVoidPtr(...) OR_NULL(PyLong_FromVoidPtr(__VA_ARGS__))
#define PyObject_CallFunctionObjArgs(...) OR_NULL(PyObject_CallFunctionObjArgs(__VA_ARGS__))
#define PyObject_CallMethodNoArgs(...) OR_NULL(PyObject_CallMethodNoArgs(__VA_ARGS__))
#define PyObject_CallMethodObjArgs(...) OR_NULL(PyObject_CallMethodObjArgs(__VA_ARGS__))
#define PyObject_CallMethodOneArg(...) OR_NULL(PyObject_CallMethodOneArg(__VA_ARGS__))
#define PyObject_CallNoArgs(...) OR_NULL(PyObject_CallNoArgs(__VA_ARGS__))
#define PyObject_CallObject(...) OR_NULL(PyObject_CallObject(__VA_ARGS__))
#define PyObject_CallOneArg(...) OR_NULL(PyObject_CallOneArg(__VA_ARGS__))
#define PyObject_GetAttr(...) OR_NULL(PyObject_GetAttr(__VA_ARGS__))
#define PyObject_GetAttrString(...) OR_NULL(PyObject_GetAttrString(__VA_ARGS__))
#define PyObject_GetBuffer(...) OR_MINUS_ONE(PyObject_GetBuffer(__VA_ARGS__))
#define PyObject_GetItem(...) OR_NULL(PyObject_GetItem(__VA_ARGS__))
#define PyObject_Vectorcall(...) OR_NULL(PyObject_Vectorcall(__VA_ARGS__))
#define PyContext_Enter(...) OR_MINUS_ONE(PyContext_Enter(__VA_ARGS__))
#define PySequence_Concat(...) OR_NULL(PySequence_Concat(__VA_ARGS__))
#define PyTuple_GetSlice(...) OR_NULL(PyTuple_GetSlice(__VA_ARGS__))
#define PyTuple_New(...) OR_NULL(PyTuple_New(__VA_ARGS__))
#define PyTuple_Pack(...) OR_NULL(PyTuple_Pack(__VA_ARGS__))
