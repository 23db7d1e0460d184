/* NumPy arguments of compiled functions: small ones are copied into memory of purax's own that XLA reads in
place, and that is used again for later calls, since making a buffer takes XLA most of a call's time.

Memory is lent to one call at a time. It is free again when the program is done, which a result of it tells, and nobody
else holds the array that was made of it. Only programs that cannot keep it have a `witness` (see `Entry`). */

#ifndef PURAX_LOANS_H
#define PURAX_LOANS_H

#define MOST_LOANS 8   /* of one type that are kept */
#define MOST_TYPES 256 /* for which some are kept */

typedef struct {
    PyObject_HEAD
    PyObject *array, *buffer; /* a `DeviceArray` and XLA's buffer in it */
    PyObject *witness;        /* a result of the program that read it last */
    char *memory;
    Py_ssize_t length, references; /* in bytes; to the buffer, as long as it is the array's alone */
} Loan;

static PyTypeObject loan_type;
static PyObject *loans;        /* dict: type -> list of Loan */
static PyObject *numpy_avals;  /* dict: (shape, dtype, settings) -> type, or None where an argument is converted */
static PyObject *aval_of_numpy, *new_memory; /* see `set_up_loans` */
static PyObject *s_shape, *s_dtype, *s_is_deleted, *s_is_ready;

static void dealloc_loan(Loan *self) {
    Py_XDECREF(self->array);
    Py_XDECREF(self->buffer);
    Py_XDECREF(self->witness);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject loan_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax.execution._dispatch.Loan",
    .tp_basicsize = sizeof(Loan),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Memory that NumPy arguments are copied to.",
    .tp_dealloc = (destructor)dealloc_loan,
};

/* The type of a NumPy array that programs take as it is, borrowed; NULL without an error: it has to be converted. */
static PyObject *type_of_numpy(PyObject *x, PyObject *trace_key) {
    PyObject *shape = PyObject_GetAttr(x, s_shape), *dtype = PyObject_GetAttr(x, s_dtype), *aval = NULL;
    PyObject *key = shape == NULL || dtype == NULL ? NULL : PyTuple_Pack(3, shape, dtype, trace_key);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    if (key == NULL) return NULL;
    aval = PyDict_GetItemWithError(numpy_avals, key);
    if (aval == NULL && !PyErr_Occurred() && (aval = PyObject_CallOneArg(aval_of_numpy, x)) != NULL) {
        if (PyDict_GET_SIZE(numpy_avals) >= 4096) PyDict_Clear(numpy_avals);
        int failed = PyDict_SetItem(numpy_avals, key, aval);
        Py_DECREF(aval); /* the dict has it */
        if (failed) aval = NULL;
    }
    Py_DECREF(key);
    return aval == Py_None ? NULL : aval;
}

/* Whether a method without arguments of a buffer says True; -1 for an error. */
static int says(PyObject *buffer, PyObject *method) {
    PyObject *answer = PyObject_CallMethodNoArgs(buffer, method);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : answer == Py_True;
}

/* Whether nothing reads the memory any more, nor ever will. */
static int is_free(Loan *self) {
    if (Py_REFCNT(self->array) != 1 || Py_REFCNT(self->buffer) != self->references) return 0;
    if (self->witness == NULL) return 0;
    int is_deleted = says(self->witness, s_is_deleted); /* XLA must not be asked more of such a one */
    if (is_deleted) return is_deleted < 0 ? -1 : 0;
    return says(self->witness, s_is_ready);
}

/* Memory for a value of a type, not in use; NULL without an error: there is none that XLA reads in place. */
static Loan *new_loan(PyObject *aval) {
    PyObject *made = PyObject_CallOneArg(new_memory, aval); /* (array, buffer, address, length) or None */
    if (made == NULL || made == Py_None) {
        Py_XDECREF(made);
        return NULL;
    }
    Loan *self = (Loan *)loan_type.tp_alloc(&loan_type, 0);
    if (self != NULL) {
        self->array = Py_NewRef(PyTuple_GET_ITEM(made, 0));
        self->buffer = Py_NewRef(PyTuple_GET_ITEM(made, 1));
        self->memory = PyLong_AsVoidPtr(PyTuple_GET_ITEM(made, 2));
        self->length = PyLong_AsSsize_t(PyTuple_GET_ITEM(made, 3));
    }
    Py_DECREF(made);
    if (self != NULL) self->references = Py_REFCNT(self->buffer);
    if (PyErr_Occurred()) Py_CLEAR(self);
    return self;
}

/* Memory that holds the value of a NumPy array; NULL without an error: the array is not for it. */
static Loan *lend(PyObject *aval, PyObject *x) {
    Py_buffer view;
    if (PyObject_GetBuffer(x, &view, PyBUF_SIMPLE) < 0) { /* not contiguous */
        PyErr_Clear();
        return NULL;
    }
    Loan *loan = NULL;
    PyObject *kept = Py_XNewRef(PyDict_GetItemWithError(loans, aval)); /* asking a buffer runs Python */
    while (kept != NULL && loan == NULL && PyList_GET_SIZE(kept)) {
        Py_ssize_t last = PyList_GET_SIZE(kept) - 1;
        loan = (Loan *)Py_NewRef(PyList_GET_ITEM(kept, last));
        if (PyList_SetSlice(kept, last, last + 1, NULL) < 0 || is_free(loan) != 1) Py_CLEAR(loan);
        if (PyErr_Occurred()) break;
    }
    Py_XDECREF(kept);
    if (loan == NULL && !PyErr_Occurred()) loan = new_loan(aval);
    if (loan != NULL && loan->length == view.len)
        memcpy(loan->memory, view.buf, view.len);
    else
        Py_CLEAR(loan);
    PyBuffer_Release(&view);
    return loan;
}

/* Takes memory back from a call, of which `witness` is a result; a failure costs no more than the memory. */
static void take_back(Loan *loan, PyObject *aval, PyObject *witness) {
    Py_XSETREF(loan->witness, Py_NewRef(witness));
    PyObject *kept = PyDict_GetItemWithError(loans, aval);
    if (kept == NULL && !PyErr_Occurred()) {
        if (PyDict_GET_SIZE(loans) >= MOST_TYPES) PyDict_Clear(loans);
        PyObject *empty = PyList_New(0);
        if (empty != NULL && PyDict_SetItem(loans, aval, empty) == 0) kept = empty;
        Py_XDECREF(empty); /* the dict has it */
    }
    if (kept != NULL && PyList_GET_SIZE(kept) < MOST_LOANS) PyList_Append(kept, (PyObject *)loan);
    PyErr_Clear();
}

/* set_up_loans(aval_of_numpy, new_memory) -> the dict of what is kept */
static PyObject *set_up_loans(PyObject *module, PyObject *args) {
    if (!PyArg_ParseTuple(args, "OO", &aval_of_numpy, &new_memory)) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) Py_INCREF(PyTuple_GET_ITEM(args, i)); /* forever */
    return Py_NewRef(loans);
}

static int ready_loans(void) {
    struct { PyObject **where; const char *text; } names[] = {
        {&s_shape, "shape"}, {&s_dtype, "dtype"}, {&s_is_deleted, "is_deleted"}, {&s_is_ready, "is_ready"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if ((*names[i].where = PyUnicode_InternFromString(names[i].text)) == NULL) return -1;
    if ((loans = PyDict_New()) == NULL || (numpy_avals = PyDict_New()) == NULL) return -1;
    return PyType_Ready(&loan_type);
}

#endif
