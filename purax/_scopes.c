/* Context managers that are entered and left as a whole, whenever a signal comes; `scopes.py` tells what they mean.

   Python runs the handlers of signals between its own instructions, at the beginning of functions among others. An
   exception of a handler at the beginning of an `__exit__` in Python would leave everything in effect. At the beginning
   of these, which are in C, no handler runs; what they call is called again if it was interrupted. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define ATTEMPTS 4

static PyObject *s_enter, *s_leave, *s_throw;

typedef struct {
    PyObject_HEAD
} Scope;

/* Leaves; an exception on the way is kept and raised after another attempt has succeeded. */
static int leave(PyObject *self, PyObject *entry) {
    PyObject *kind = NULL, *error = NULL, *traceback = NULL;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        PyObject *result = PyObject_CallMethodOneArg(self, s_leave, entry);
        if (result != NULL) {
            Py_DECREF(result);
            if (kind == NULL) return 0;
            break;
        }
        if (kind == NULL)
            PyErr_Fetch(&kind, &error, &traceback);
        else
            PyErr_Clear();
    }
    PyErr_Restore(kind, error, traceback);
    return -1;
}

static PyObject *scope_enter(PyObject *self, PyObject *unused) {
    PyObject *entry = PyList_New(0);
    if (entry == NULL) return NULL;
    PyObject *result = PyObject_CallMethodOneArg(self, s_enter, entry);
    if (result == NULL && PyList_GET_SIZE(entry) > 0) {
        PyObject *kind, *error, *traceback;
        PyErr_Fetch(&kind, &error, &traceback);
        if (leave(self, entry) < 0) PyErr_Clear();
        PyErr_Restore(kind, error, traceback);
    }
    Py_DECREF(entry);
    return result;
}

static PyObject *scope_exit(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    PyObject *entry = PyList_New(0);
    if (entry == NULL) return NULL;
    int failed = leave(self, entry);
    Py_DECREF(entry);
    if (failed < 0) return NULL;
    Py_RETURN_FALSE;
}

static PyMethodDef scope_methods[] = {
    {"__enter__", scope_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))scope_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject ScopeType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax._scopes.Scope",
    .tp_basicsize = sizeof(Scope),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_methods = scope_methods,
    .tp_new = PyType_GenericNew,
};

typedef struct {
    PyObject_HEAD
    PyObject *generator;
} Steps;

static int steps_init(Steps *self, PyObject *arguments, PyObject *names) {
    PyObject *generator;
    if (!PyArg_ParseTuple(arguments, "O", &generator)) return -1;
    Py_XSETREF(self->generator, Py_NewRef(generator));
    return 0;
}

static int steps_traverse(Steps *self, visitproc visit, void *arg) {
    Py_VISIT(self->generator);
    return 0;
}

static int steps_clear(Steps *self) {
    Py_CLEAR(self->generator);
    return 0;
}

static void steps_dealloc(Steps *self) {
    PyObject_GC_UnTrack(self);
    steps_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *wrong_yields(const char *what) {
    PyErr_SetString(PyExc_RuntimeError, what);
    return NULL;
}

static PyObject *steps_enter(Steps *self, PyObject *unused) {
    PyObject *value = NULL;
    if (self->generator == NULL) return wrong_yields("a scope was not made");
    PySendResult state = PyIter_Send(self->generator, Py_None, &value);
    if (state == PYGEN_NEXT) return value;
    Py_XDECREF(value);
    return state == PYGEN_ERROR ? NULL : wrong_yields("a scope did not yield");
}

/* Whether the exception that is set says no more than that the generator was left by `error`; it is cleared then. */
static int is_only(PyObject *error) {
    PyObject *kind, *raised, *traceback;
    PyErr_Fetch(&kind, &raised, &traceback);
    PyErr_NormalizeException(&kind, &raised, &traceback);
    int same = raised == error;
    if (!same && raised != NULL && PyErr_GivenExceptionMatches(raised, PyExc_RuntimeError)) {
        PyObject *cause = PyException_GetCause(raised); /* what Python makes of a StopIteration */
        same = cause == error;
        Py_XDECREF(cause);
    }
    if (!same) {
        PyErr_Restore(kind, raised, traceback);
        return 0;
    }
    Py_XDECREF(kind);
    Py_XDECREF(raised);
    Py_XDECREF(traceback);
    return 1;
}

static PyObject *steps_exit(Steps *self, PyObject *const *arguments, Py_ssize_t count) {
    PyObject *value = NULL, *error = count > 1 ? arguments[1] : Py_None;
    if (self->generator == NULL) return wrong_yields("a scope was not made");
    if (error == Py_None) {
        PySendResult state = PyIter_Send(self->generator, Py_None, &value);
        Py_XDECREF(value);
        if (state == PYGEN_ERROR) return NULL;
        if (state == PYGEN_RETURN) Py_RETURN_FALSE;
        return wrong_yields("a scope yielded twice");
    }
    PyObject *traceback = PyException_GetTraceback(error);
    value = PyObject_CallMethodOneArg(self->generator, s_throw, error);
    PyObject *result = NULL;
    if (value != NULL) {
        Py_DECREF(value);
        wrong_yields("a scope yielded twice");
    } else if (is_only(error)) {
        if (traceback != NULL) PyException_SetTraceback(error, traceback); /* without the generator's frames */
        result = Py_NewRef(Py_False);
    } else if (PyErr_ExceptionMatches(PyExc_StopIteration)) { /* it ended: the error is dealt with */
        PyErr_Clear();
        result = Py_NewRef(Py_True);
    }
    Py_XDECREF(traceback);
    return result;
}

static PyMethodDef steps_methods[] = {
    {"__enter__", (PyCFunction)steps_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))steps_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject StepsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax._scopes.Steps",
    .tp_basicsize = sizeof(Steps),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_methods = steps_methods,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)steps_init,
    .tp_traverse = (traverseproc)steps_traverse,
    .tp_clear = (inquiry)steps_clear,
    .tp_dealloc = (destructor)steps_dealloc,
};

typedef struct {
    PyObject_HEAD
    PyObject *object, *name, *value, *previous;
} Assigned;

static int assigned_init(Assigned *self, PyObject *arguments, PyObject *names) {
    PyObject *object, *name, *value;
    if (!PyArg_ParseTuple(arguments, "OUO", &object, &name, &value)) return -1;
    Py_XSETREF(self->object, Py_NewRef(object));
    Py_XSETREF(self->name, Py_NewRef(name));
    Py_XSETREF(self->value, Py_NewRef(value));
    return 0;
}

static int assigned_traverse(Assigned *self, visitproc visit, void *arg) {
    Py_VISIT(self->object);
    Py_VISIT(self->value);
    Py_VISIT(self->previous);
    return 0;
}

static int assigned_clear(Assigned *self) {
    Py_CLEAR(self->object);
    Py_CLEAR(self->name);
    Py_CLEAR(self->value);
    Py_CLEAR(self->previous);
    return 0;
}

static void assigned_dealloc(Assigned *self) {
    PyObject_GC_UnTrack(self);
    assigned_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *assigned_enter(Assigned *self, PyObject *unused) {
    PyObject *previous = PyObject_GetAttr(self->object, self->name);
    if (previous == NULL) return NULL;
    Py_XSETREF(self->previous, previous);
    if (PyObject_SetAttr(self->object, self->name, self->value) < 0) return NULL;
    return Py_NewRef(self->value);
}

static PyObject *assigned_exit(Assigned *self, PyObject *const *arguments, Py_ssize_t count) {
    if (self->previous != NULL && PyObject_SetAttr(self->object, self->name, self->previous) < 0) return NULL;
    Py_RETURN_FALSE;
}

static PyMethodDef assigned_methods[] = {
    {"__enter__", (PyCFunction)assigned_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))assigned_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject AssignedType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax._scopes.Assigned",
    .tp_basicsize = sizeof(Assigned),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_methods = assigned_methods,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)assigned_init,
    .tp_traverse = (traverseproc)assigned_traverse,
    .tp_clear = (inquiry)assigned_clear,
    .tp_dealloc = (destructor)assigned_dealloc,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_scopes", NULL, -1, NULL};

PyMODINIT_FUNC PyInit__scopes(void) {
    s_enter = PyUnicode_InternFromString("enter");
    s_leave = PyUnicode_InternFromString("leave");
    s_throw = PyUnicode_InternFromString("throw");
    if (s_enter == NULL || s_leave == NULL || s_throw == NULL) return NULL;
    if (PyType_Ready(&ScopeType) < 0 || PyType_Ready(&StepsType) < 0 || PyType_Ready(&AssignedType) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    if (PyModule_AddObjectRef(module, "Scope", (PyObject *)&ScopeType) < 0 ||
        PyModule_AddObjectRef(module, "Assigned", (PyObject *)&AssignedType) < 0 ||
        PyModule_AddObjectRef(module, "Steps", (PyObject *)&StepsType) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
