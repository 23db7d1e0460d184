/* `Primitive.bind`, and its fast path for small eager work: arrays whose values are on the host go straight to the
function that computes with NumPy, if the eager trace has planned such an operation before. So do they inside of
transformations that would hand the operation on to it.

`Binder` is the base of `Primitive`. What is planned is what `EagerTrace` says (`short_cut` in execution/eager.py);
everything else goes to `process` of the current trace, as in Python. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "_exact.h"
#include "_thread_values.h"

#define MAX_OPERANDS 8
#define MAX_PLANS 20000

static PyObject *current, *quiet, *short_cut, *as_numpy;
static PyTypeObject *array_type, *numpy_type;
static Py_ssize_t aval_slot, host_slot, buffer_slot, ends_eager_slot, on_host_slot;
/* (primitive, types…, names of parameters, parameters…) -> (function, type of the result), or None: no fast path. */
static PyObject *plans;
static PyObject *s_trace, *s_process, *s_context;
static _Thread_local ThreadValues known_current, known_quiet;

/* What a plan is found by: all operands are arrays. NULL without an error: one is not. */
static PyObject *key_of(PyObject *self, PyObject *const *operands, Py_ssize_t count, PyObject *names) {
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t i = 0; i < count; i++)
        if (!Py_IS_TYPE(operands[i], array_type) || SLOT(operands[i], aval_slot) == NULL) return NULL;
    PyObject *key = PyTuple_New(1 + count + (named ? 1 + named : 0));
    if (key == NULL) return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(key, 1 + i, Py_NewRef(SLOT(operands[i], aval_slot)));
    if (named) {
        PyTuple_SET_ITEM(key, 1 + count, Py_NewRef(names));
        for (Py_ssize_t i = 0; i < named; i++) {
            PyObject *part = exact(operands[count + i]);
            if (part == NULL) {
                Py_DECREF(key);
                return NULL;
            }
            PyTuple_SET_ITEM(key, 2 + count + i, part);
        }
    }
    return key;
}

/* The result of a planned operation. NULL without an error: a value is not on the host. */
static PyObject *run_plan(PyObject *plan, PyObject *const *operands, Py_ssize_t count) {
    PyObject *values[MAX_OPERANDS + 1];
    for (Py_ssize_t i = 0; i < count; i++) {
        values[1 + i] = SLOT(operands[i], host_slot);
        if (values[1 + i] == NULL || values[1 + i] == Py_None) return NULL;
    }
    PyObject *context = thread_value(&known_quiet, quiet, s_context);
    if (context == NULL) return NULL;
    if (PyContext_Enter(context) < 0) {
        Py_DECREF(context);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) Py_INCREF(values[1 + i]);
    size_t arguments = (size_t)count | PY_VECTORCALL_ARGUMENTS_OFFSET;
    PyObject *result = PyObject_Vectorcall(PyTuple_GET_ITEM(plan, 0), values + 1, arguments, NULL);
    for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(values[1 + i]);
    if (PyContext_Exit(context) < 0) Py_CLEAR(result);
    Py_DECREF(context);
    if (result != NULL && !Py_IS_TYPE(result, numpy_type)) Py_SETREF(result, PyObject_CallOneArg(as_numpy, result));
    return result;
}

/* A new array with a value on the host, whose reference it takes. */
static PyObject *array_of(PyObject *aval, PyObject *host) {
    PyObject *array = array_type->tp_alloc(array_type, 0);
    if (array == NULL) {
        Py_DECREF(host);
        return NULL;
    }
    SLOT(array, aval_slot) = Py_NewRef(aval);
    SLOT(array, host_slot) = host;
    SLOT(array, buffer_slot) = Py_NewRef(Py_None);
    return array;
}

/* Hands an operation to `process` of a trace, as Python would. */
static PyObject *process(PyObject *trace, PyObject *self, PyObject *const *operands, Py_ssize_t count, PyObject *names) {
    PyObject *result = NULL, *params = PyDict_New(), *all = PyTuple_New(count);
    if (params == NULL || all == NULL) goto end;
    for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(all, i, Py_NewRef(operands[i]));
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(params, PyTuple_GET_ITEM(names, i), operands[count + i]) < 0) goto end;
    result = PyObject_CallMethodObjArgs(trace, s_process, self, all, params, NULL);
end:
    Py_XDECREF(params);
    Py_XDECREF(all);
    return result;
}

/* Remembers what the eager trace has planned for an operation that it has just run. */
static int remember(PyObject *key, PyObject *self, PyObject *const *operands, Py_ssize_t count, PyObject *names) {
    PyObject *avals = PyTuple_GetSlice(key, 1, 1 + count), *params = PyDict_New(), *plan = NULL;
    int failed = avals == NULL || params == NULL;
    for (Py_ssize_t i = 0; !failed && names != NULL && i < PyTuple_GET_SIZE(names); i++)
        failed = PyDict_SetItem(params, PyTuple_GET_ITEM(names, i), operands[count + i]) < 0;
    if (!failed) plan = PyObject_CallFunctionObjArgs(short_cut, self, avals, params, NULL);
    failed = plan == NULL;
    if (!failed && plan != Py_NotImplemented) {
        if (PyDict_GET_SIZE(plans) >= MAX_PLANS) PyDict_Clear(plans);
        failed = PyDict_SetItem(plans, key, plan) < 0;
    }
    Py_XDECREF(avals);
    Py_XDECREF(params);
    Py_XDECREF(plan);
    return failed ? -1 : 0;
}

#include "_staging.h"
#include "_host_rules.h"

static PyObject *bind(PyObject *self, PyObject *const *operands, Py_ssize_t count, PyObject *names) {
    PyObject *trace = thread_value(&known_current, current, s_trace), *result = NULL;
    if (trace == NULL) return NULL;
    if (Py_IS_TYPE(trace, staging_type)) {
        result = record(trace, self, operands, count, names, NULL);
        if (result == NULL && !PyErr_Occurred()) result = process(trace, self, operands, count, names);
        Py_DECREF(trace);
        return result;
    }
    PyObject *key = NULL;
    PyObject *on_host = on_host_slot ? SLOT(trace, on_host_slot) : NULL;
    if (on_host != NULL && Py_IS_TYPE(on_host, &host_rules_type)) {
        result = apply((HostRules *)on_host, trace, self, operands, count, names, NULL);
        if (result != NULL || PyErr_Occurred()) {
            Py_DECREF(trace);
            return result;
        }
    }
    if (ends_eager_slot && SLOT(trace, ends_eager_slot) == Py_True && count > 0 && count <= MAX_OPERANDS)
        key = key_of(self, operands, count, names);
    if (key == NULL) {
        if (!PyErr_Occurred()) result = process(trace, self, operands, count, names);
        Py_DECREF(trace);
        return result;
    }
    PyObject *plan = PyDict_GetItemWithError(plans, key);
    if (plan == Py_None)
        result = process(trace, self, operands, count, names);
    else if (plan != NULL) {
        Py_INCREF(plan);
        PyObject *host = run_plan(plan, operands, count);
        if (host != NULL) result = array_of(PyTuple_GET_ITEM(plan, 1), host);
        Py_DECREF(plan);
        if (result == NULL && !PyErr_Occurred()) result = process(trace, self, operands, count, names);
    } else if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) {
        result = NULL;
    } else {
        int has_key = !PyErr_Occurred(); /* else a parameter cannot be hashed */
        PyErr_Clear();
        result = process(trace, self, operands, count, names);
        if (result != NULL && has_key && remember(key, self, operands, count, names) < 0) Py_CLEAR(result);
    }
    Py_DECREF(key);
    Py_DECREF(trace);
    return result;
}

#include "_operators.h"

static PyMethodDef methods[] = {{"bind", (PyCFunction)(void (*)(void))bind, METH_FASTCALL | METH_KEYWORDS,
                                 "bind($self, /, *operands, **params)\n--\n\n"
                                 "Applies the operation: hands it to the current trace."},
                                {NULL}};

static PyTypeObject binder_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax.core._bind.Binder",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "What can be applied to operands: the base of `Primitive`.",
    .tp_new = PyType_GenericNew,
    .tp_methods = methods,
};

/* set_current(current): who handles operations. */
static PyObject *set_current(PyObject *module, PyObject *local) {
    Py_XSETREF(current, Py_NewRef(local));
    Py_RETURN_NONE;
}

/* drop_unused(dictionary) -> how many items were removed, whose values nothing else held.

   Nothing else runs meanwhile that could look one of them up: neither the keys nor the values are objects of Python code.
 */
static PyObject *drop_unused(PyObject *module, PyObject *dictionary) {
    if (!PyDict_CheckExact(dictionary)) {
        PyErr_SetString(PyExc_TypeError, "drop_unused needs a dict");
        return NULL;
    }
    PyObject *unused = PyList_New(0), *key, *value;
    if (unused == NULL) return NULL;
    Py_ssize_t position = 0, dropped = 0;
    while (PyDict_Next(dictionary, &position, &key, &value))
        if (Py_REFCNT(value) == 1 && PyList_Append(unused, key) < 0) goto failed;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(unused); i++) {
        key = PyList_GET_ITEM(unused, i);
        value = PyDict_GetItemWithError(dictionary, key);
        if (value == NULL && PyErr_Occurred()) goto failed;
        if (value != NULL && Py_REFCNT(value) == 1) {
            if (PyDict_DelItem(dictionary, key) < 0) goto failed;
            dropped++;
        }
    }
    Py_DECREF(unused);
    return PyLong_FromSsize_t(dropped);
failed:
    Py_DECREF(unused);
    return NULL;
}

/* set_eager(Trace, quiet, short_cut, numpy.asarray, DeviceArray, numpy.ndarray) -> the dict of plans */
static PyObject *set_eager(PyObject *module, PyObject *args) {
    PyObject *trace, *array, *numpy;
    if (!PyArg_ParseTuple(args, "OOOOO!O!", &trace, &quiet, &short_cut, &as_numpy, &PyType_Type, &array, &PyType_Type,
                          &numpy))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) Py_INCREF(PyTuple_GET_ITEM(args, i)); /* forever */
    array_type = (PyTypeObject *)array;
    numpy_type = (PyTypeObject *)numpy;
    aval_slot = slot_of(array, "aval");
    host_slot = slot_of(array, "_host");
    buffer_slot = slot_of(array, "_buffer");
    ends_eager_slot = slot_of(trace, "ends_eager");
    on_host_slot = slot_of(trace, "on_host");
    if (aval_slot < 0 || host_slot < 0 || buffer_slot < 0 || ends_eager_slot < 0 || on_host_slot < 0) return NULL;
    return Py_NewRef(plans);
}

/* rank_of_numbers(list) -> the highest of 0: bool, 1: int, 2: float, 3: complex; None if something else is in it */
static PyObject *rank_of_numbers(PyObject *module, PyObject *values) {
    long highest = 0;
    if (!PyList_CheckExact(values)) Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); i++) {
        PyObject *value = PyList_GET_ITEM(values, i);
        long rank = PyFloat_CheckExact(value) ? 2 : PyLong_CheckExact(value) ? 1 : PyBool_Check(value) ? 0
                    : PyComplex_CheckExact(value) ? 3 : -1;
        if (rank < 0) Py_RETURN_NONE;
        if (rank > highest) highest = rank;
    }
    return PyLong_FromLong(highest);
}

/* address_of(array) -> where its memory begins */
static PyObject *address_of(PyObject *module, PyObject *array) {
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_STRIDES) < 0) return NULL;
    PyObject *address = PyLong_FromVoidPtr(view.buf);
    PyBuffer_Release(&view);
    return address;
}

/* x where the mask is not 0 and y elsewhere: by bits, since processors mispredict a jump for each element */
#define CHOOSE(bits)                                                                                  \
    for (Py_ssize_t i = 0; i < count; i++) {                                                          \
        bits all = (bits) - (bits)(mask[i] != 0);                                                     \
        ((bits *restrict)out)[i] = (((const bits *)x)[i] & all) | (((const bits *)y)[i] & (bits)~all); \
    }

static int choose_all(const char *restrict mask, const void *restrict x, const void *restrict y, void *restrict out,
                       Py_ssize_t count, Py_ssize_t width) {
    if (width == 1) CHOOSE(uint8_t)
    if (width == 2) CHOOSE(uint16_t)
    if (width == 4) CHOOSE(uint32_t)
    if (width == 8) CHOOSE(uint64_t)
    return width == 1 || width == 2 || width == 4 || width == 8;
}

/* choose(mask, x, y, out): contiguous arrays, the last three with elements of 1, 2, 4 or 8 bytes */
static PyObject *choose(PyObject *module, PyObject *const *arrays, Py_ssize_t count) {
    Py_buffer views[4];
    int given = 0;
    if (count != 4) return PyErr_Format(PyExc_TypeError, "choose takes 4 arrays");
    while (given < 4 && PyObject_GetBuffer(arrays[given], &views[given], given < 3 ? PyBUF_ND : PyBUF_CONTIG) == 0)
        given++;
    if (given == 4) {
        Py_ssize_t size = views[0].len, width = views[3].itemsize, octets = size * width;
        int is_done = 0;
        if (views[0].itemsize == 1 && views[1].len == octets && views[2].len == octets && views[3].len == octets) {
            Py_BEGIN_ALLOW_THREADS
            is_done = choose_all(views[0].buf, views[1].buf, views[2].buf, views[3].buf, size, width);
            Py_END_ALLOW_THREADS
        }
        if (!is_done) PyErr_SetString(PyExc_ValueError, "choose takes arrays of one size, of 1, 2, 4 or 8 bytes");
    }
    while (given > 0) PyBuffer_Release(&views[--given]);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* exact(value) of core/exact.py */
static PyObject *find_exact(PyObject *module, PyObject *value) { return exact(value); }

static PyMethodDef functions[] = {
    {"address_of", address_of, METH_O, NULL},
    {"exact", find_exact, METH_O, NULL},
    {"choose", (PyCFunction)(void (*)(void))choose, METH_FASTCALL, NULL},
    {"forget_codes", forget_codes, METH_NOARGS, NULL},
    {"rank_of_numbers", rank_of_numbers, METH_O, NULL},
    {"set_current", set_current, METH_O, NULL},
    {"set_exact", set_exact, METH_VARARGS, NULL},
    {"record_operation", record_operation, METH_VARARGS, NULL},
    {"run_on_host_backwards", run_on_host_backwards, METH_VARARGS, NULL},
    {"set_addition", set_addition, METH_O, NULL},
    {"set_eager", set_eager, METH_VARARGS, NULL},
    {"drop_unused", drop_unused, METH_O, NULL},
    {"set_host_rules", set_host_rules, METH_VARARGS, NULL},
    {"set_operators", set_operators, METH_VARARGS, NULL},
    {"set_staging", set_staging, METH_VARARGS, NULL},
    {"set_tape", set_tape, METH_VARARGS, NULL},
    {"user_location", find_user_location, METH_NOARGS, NULL},
    {NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_bind", "See purax.core.primitive.", -1, functions};

PyMODINIT_FUNC PyInit__bind(void) {
    s_trace = PyUnicode_InternFromString("trace");
    s_process = PyUnicode_InternFromString("process");
    s_context = PyUnicode_InternFromString("context");
    plans = PyDict_New();
    if (s_trace == NULL || s_process == NULL || s_context == NULL || plans == NULL) return NULL;
    if (PyType_Ready(&binder_type) < 0 || ready_operators() < 0 || ready_host_rules() < 0 ||
        ready_staging() < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && (PyModule_AddObjectRef(module, "Binder", (PyObject *)&binder_type) < 0 ||
                           PyModule_AddObjectRef(module, "HostRules", (PyObject *)&host_rules_type) < 0 ||
                           PyModule_AddObjectRef(module, "Operators", (PyObject *)&operators_type) < 0))
        Py_CLEAR(module);
    return module;
}
