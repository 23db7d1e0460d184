/* Calls of functions that forget to leave: XLA's pytrees count each level of a tree with Py_EnterRecursiveCall, and
where an exception of C++ passes through them (of a node, of `is_leaf`, of keys that cannot be sorted) they do not count
back. A thread that lost its depth cannot call anything any more. `Guarded(function)` puts back what was lost. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>

#if PY_VERSION_HEX < 0x030C0000
#define LEFT(state) ((state)->recursion_remaining)
#elif PY_VERSION_HEX < 0x030E0000
#define LEFT(state) ((state)->c_recursion_remaining)
#endif

typedef struct {
    PyObject_HEAD
    PyObject *function;
    vectorcallfunc call;
} Guarded;

static PyObject *guarded_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names) {
#ifdef LEFT
    PyThreadState *state = PyThreadState_Get();
    int left = LEFT(state);
    PyObject *result = PyObject_Vectorcall(((Guarded *)self)->function, args, count, names);
    if (result == NULL) LEFT(state) = left;
    return result;
#else
    return PyObject_Vectorcall(((Guarded *)self)->function, args, count, names);
#endif
}

static PyObject *guarded_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *function;
    if (!PyArg_ParseTuple(args, "O", &function)) return NULL;
    Guarded *self = (Guarded *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->function = Py_NewRef(function);
    self->call = guarded_call;
    return (PyObject *)self;
}

static int guarded_traverse(Guarded *self, visitproc visit, void *arg) {
    Py_VISIT(self->function);
    return 0;
}

static int guarded_clear(Guarded *self) {
    Py_CLEAR(self->function);
    return 0;
}

static void guarded_dealloc(Guarded *self) {
    PyObject_GC_UnTrack(self);
    guarded_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject GuardedType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax.tree._recursion.Guarded",
    .tp_doc = "A function whose calls leave the depth of recursion as they found it.",
    .tp_basicsize = sizeof(Guarded),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Guarded, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = guarded_new,
    .tp_traverse = (traverseproc)guarded_traverse,
    .tp_clear = (inquiry)guarded_clear,
    .tp_dealloc = (destructor)guarded_dealloc,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "purax.tree._recursion", NULL, -1, NULL};

PyMODINIT_FUNC PyInit__recursion(void) {
    if (PyType_Ready(&GuardedType) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddObjectRef(made, "Guarded", (PyObject *)&GuardedType) < 0) Py_CLEAR(made);
    return made;
}
