/* `Operators`, the base of concrete arrays: the fast paths of x + y, x[i], x.reshape(…) and x.T for values on the host.

What an operator is for operands of one dtype is what `purax.numpy._operators` says (`set_operators`). Whatever is not
the common case goes to the method of the same name of `Array`, which is in Python and the meaning of all this. */

#ifndef PURAX_OPERATORS_H
#define PURAX_OPERATORS_H

enum { ADD, SUB, MUL, TRUEDIV, LT, LE, EQ, NE, GT, GE, OPERATORS };
static const char *const operator_names[OPERATORS][2] = {
    {"__add__", "__radd__"}, {"__sub__", "__rsub__"}, {"__mul__", "__rmul__"}, {"__truediv__", "__rtruediv__"},
    {"__lt__", "__gt__"},    {"__le__", "__ge__"},    {"__eq__", "__eq__"},    {"__ne__", "__ne__"},
    {"__gt__", "__lt__"},    {"__ge__", "__le__"}};
#define KEEPS_VIEWS 4096 /* elements; up to here a view of an array is kept, however few of its elements it shows */

static PyTypeObject operators_type;
/* (name, reflected name, dict of the primitive for each dtype) of each operator, once `set_operators` was called */
static PyObject *operators[OPERATORS][3];
static PyObject *plain, *eager_trace, *numbers, *interned, *config, *shaped_array; /* see `set_operators` */
static PyTypeObject *dtype_type;
static Py_ssize_t shape_slot, dtype_slot, weak_slot, size_slot;
static PyObject *s_shape, *s_reshape, *s_copy, *s_T, *s_getitem, *s_limit;

/* What `Array` has under that name. */
static PyObject *method_of_array(PyObject *name) {
    if (plain != NULL) return PyObject_GetAttr(plain, name);
    return PyErr_Format(PyExc_AttributeError, "arrays get %R when purax.numpy is imported", name);
}

/* The method of `Array` of that name, called with two arguments. */
static PyObject *in_python(PyObject *name, PyObject *self, PyObject *other) {
    PyObject *method = method_of_array(name);
    if (method == NULL) return NULL;
    PyObject *arguments[] = {NULL, self, other};
    PyObject *result = PyObject_Vectorcall(method, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    Py_DECREF(method);
    return result;
}

/* A Python number beside an array of type `aval`, if it was an operand before: as a scalar array, borrowed. NULL
without an error: it was not, or some transformation is in force. */
static PyObject *known_number(PyObject *number, PyObject *aval) {
    if (!PyLong_CheckExact(number) && !(PyFloat_CheckExact(number) && PyFloat_AS_DOUBLE(number) != 0)) return NULL;
    PyObject *trace = thread_value(&known_current, current, s_trace);
    if (trace == NULL) return NULL;
    Py_DECREF(trace); /* the thread holds it */
    if (trace != eager_trace) return NULL;
    PyObject *key = PyTuple_Pack(3, Py_TYPE(number), number, aval);
    if (key == NULL) return NULL;
    PyObject *array = PyDict_GetItemWithError(numbers, key);
    Py_DECREF(key);
    return array;
}

/* x op y for arrays of one dtype, of one shape or scalar, or an array and a number. */
static PyObject *operate(int which, PyObject *x, PyObject *y) {
    if (plain == NULL) Py_RETURN_NOTIMPLEMENTED; /* arrays have no operators yet */
    PyObject *operands[] = {x, y}, *aval = NULL;
    int x_is_array = Py_IS_TYPE(x, array_type), y_is_array = Py_IS_TYPE(y, array_type);
    if (x_is_array && y_is_array) {
        PyObject *other = SLOT(y, aval_slot);
        aval = SLOT(x, aval_slot);
        if (aval == NULL || other == NULL) /* not made yet: Python says so */
            aval = NULL;
        else if (aval != other && (SLOT(aval, dtype_slot) != SLOT(other, dtype_slot) ||
                              (PyTuple_GET_SIZE(SLOT(aval, shape_slot)) && PyTuple_GET_SIZE(SLOT(other, shape_slot)))))
            aval = NULL;
    } else if (x_is_array || y_is_array) {
        PyObject **number = x_is_array ? &operands[1] : &operands[0];
        aval = SLOT(x_is_array ? x : y, aval_slot);
        PyObject *known = aval == NULL ? NULL : known_number(*number, aval);
        if (known != NULL)
            *number = known;
        else {
            if (PyErr_Occurred()) return NULL;
            aval = NULL;
        }
    }
    if (aval != NULL) {
        PyObject *primitive = PyDict_GetItemWithError(operators[which][2], SLOT(aval, dtype_slot));
        if (primitive != NULL) {
            Py_INCREF(operands[0]);
            Py_INCREF(operands[1]);
            PyObject *result = bind(primitive, operands, 2, NULL);
            Py_DECREF(operands[0]);
            Py_DECREF(operands[1]);
            return result;
        }
        if (PyErr_Occurred()) return NULL;
    }
    if (PyObject_TypeCheck(x, &operators_type)) return in_python(operators[which][0], x, y);
    return in_python(operators[which][1], y, x);
}

static PyObject *add(PyObject *x, PyObject *y) { return operate(ADD, x, y); }
static PyObject *subtract(PyObject *x, PyObject *y) { return operate(SUB, x, y); }
static PyObject *multiply(PyObject *x, PyObject *y) { return operate(MUL, x, y); }
static PyObject *divide(PyObject *x, PyObject *y) { return operate(TRUEDIV, x, y); }
static PyObject *compare(PyObject *x, PyObject *y, int how) {
    static const int which[] = {[Py_LT] = LT, [Py_LE] = LE, [Py_EQ] = EQ, [Py_NE] = NE, [Py_GT] = GT, [Py_GE] = GE};
    return operate(which[how], x, y);
}

/* The value on the host of an array whose elements are NumPy's, borrowed, if an operation on it ends in the eager
trace; NULL without an error if not. */
static PyObject *host_of(PyObject *self) {
    if (!Py_IS_TYPE(self, array_type) || plain == NULL) return NULL;
    PyObject *host = SLOT(self, host_slot);
    if (host == NULL || host == Py_None || SLOT(self, aval_slot) == NULL) return NULL;
    if (!PyObject_TypeCheck(SLOT(SLOT(self, aval_slot), dtype_slot), dtype_type)) return NULL;
    PyObject *trace = thread_value(&known_current, current, s_trace);
    if (trace == NULL) return NULL;
    int ends_eager = SLOT(trace, ends_eager_slot) == Py_True;
    Py_DECREF(trace);
    return ends_eager ? host : NULL;
}

/* Whether what NumPy raised is better said by Python, which then begins again; clears it. */
static int is_refused(void) {
    if (!PyErr_ExceptionMatches(PyExc_IndexError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
        !PyErr_ExceptionMatches(PyExc_TypeError))
        return 0;
    PyErr_Clear();
    return 1;
}

/* A view of the value of `self`, whose reference it takes, as an array. */
static PyObject *array_of_view(PyObject *self, PyObject *view) {
    PyObject *own = SLOT(self, aval_slot), *aval = NULL, *shape = PyObject_GetAttr(view, s_shape);
    if (shape != NULL) {
        PyObject *key = PyTuple_Pack(3, shape, SLOT(own, dtype_slot), SLOT(own, weak_slot));
        if (key != NULL) {
            aval = Py_XNewRef(PyDict_GetItemWithError(interned, key));
            if (aval == NULL && !PyErr_Occurred()) aval = PyObject_CallObject(shaped_array, key);
            Py_DECREF(key);
        }
        Py_DECREF(shape);
    }
    if (aval == NULL) {
        Py_DECREF(view);
        return NULL;
    }
    size_t size = PyLong_AsSize_t(SLOT(own, size_slot)), left = PyLong_AsSize_t(SLOT(aval, size_slot));
    if (size > KEEPS_VIEWS && left < size) { /* a view would keep all of a large array alive */
        PyObject *limit = PyObject_GetAttr(config, s_limit);
        long long most = limit == NULL ? -1 : PyLong_AsLongLong(limit);
        Py_XDECREF(limit);
        if (most >= 0 && size > (size_t)most && left <= (size_t)most)
            Py_SETREF(view, PyObject_CallMethodNoArgs(view, s_copy));
        if (PyErr_Occurred()) Py_CLEAR(view);
    }
    PyObject *result = view == NULL ? NULL : array_of(aval, view);
    Py_DECREF(aval);
    return result;
}

static int is_plain(PyObject *bound) { return bound == Py_None || PyLong_CheckExact(bound); }

/* Whether an index is a slice between integers. */
static int is_plain_slice(PyObject *index) {
    if (!PySlice_Check(index)) return 0;
    PySliceObject *slice = (PySliceObject *)index;
    return is_plain(slice->start) && is_plain(slice->stop) && is_plain(slice->step);
}

/* An index for NumPy that gives a view and never a scalar; NULL without an error if it is of another kind. */
static PyObject *index_of_view(PyObject *index, Py_ssize_t ndim) {
    if (is_plain_slice(index)) return Py_NewRef(index);
    if (is_plain(index)) return ndim > 1 ? Py_NewRef(index) : PyTuple_Pack(2, index, Py_Ellipsis);
    if (!PyTuple_CheckExact(index)) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(index);
    int has_ellipsis = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *part = PyTuple_GET_ITEM(index, i);
        has_ellipsis |= part == Py_Ellipsis;
        if (!is_plain(part) && !is_plain_slice(part) && part != Py_Ellipsis) return NULL;
    }
    if (has_ellipsis) return Py_NewRef(index);
    PyObject *all = PyTuple_New(count + 1);
    if (all == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(all, i, Py_NewRef(PyTuple_GET_ITEM(index, i)));
    PyTuple_SET_ITEM(all, count, Py_NewRef(Py_Ellipsis));
    return all;
}

static PyObject *get_item(PyObject *self, PyObject *index) {
    PyObject *host = host_of(self), *where = NULL;
    if (host != NULL) where = index_of_view(index, PyTuple_GET_SIZE(SLOT(SLOT(self, aval_slot), shape_slot)));
    if (where != NULL) {
        PyObject *view = PyObject_GetItem(host, where);
        Py_DECREF(where);
        if (view != NULL) return array_of_view(self, view);
        if (!is_refused()) return NULL;
    }
    return PyErr_Occurred() ? NULL : in_python(s_getitem, self, index);
}

/* A shape of integers, with at most one that is to be computed; NULL without an error for all others. */
static PyObject *plain_shape(PyObject *const *arguments, Py_ssize_t count) {
    PyObject *shape = NULL;
    if (count == 1 && PyTuple_CheckExact(arguments[0])) {
        shape = Py_NewRef(arguments[0]);
    } else if ((shape = PyTuple_New(count)) != NULL) {
        for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(shape, i, Py_NewRef(arguments[i]));
    }
    for (Py_ssize_t i = 0; shape != NULL && i < PyTuple_GET_SIZE(shape); i++) {
        PyObject *size = PyTuple_GET_ITEM(shape, i);
        int overflow = 0;
        if (!PyLong_CheckExact(size) || PyLong_AsLongLongAndOverflow(size, &overflow) < -1) Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *reshape(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    PyObject *host = count && (names == NULL || !PyTuple_GET_SIZE(names)) ? host_of(self) : NULL, *shape = NULL;
    if (host != NULL) shape = plain_shape(arguments, count);
    if (shape != NULL) {
        PyObject *view = PyObject_CallMethodOneArg(host, s_reshape, shape);
        Py_DECREF(shape);
        PyObject *result = view == NULL ? NULL : array_of_view(self, view);
        if (result != NULL && SLOT(result, aval_slot) == SLOT(self, aval_slot)) Py_SETREF(result, Py_NewRef(self));
        if (result != NULL || !is_refused()) return result;
    }
    if (PyErr_Occurred()) return NULL;
    Py_ssize_t given = count + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyObject *method = method_of_array(s_reshape), *result = NULL;
    PyObject **all = PyMem_New(PyObject *, 1 + given);
    if (all == NULL)
        PyErr_NoMemory();
    else if (method != NULL) {
        all[0] = self;
        memcpy(all + 1, arguments, given * sizeof(PyObject *));
        result = PyObject_Vectorcall(method, all, 1 + count, names);
    }
    PyMem_Free(all);
    Py_XDECREF(method);
    return result;
}

static PyObject *get_T(PyObject *self, void *closure) {
    PyObject *host = host_of(self);
    if (host != NULL) {
        if (PyTuple_GET_SIZE(SLOT(SLOT(self, aval_slot), shape_slot)) < 2) return Py_NewRef(self);
        PyObject *view = PyObject_GetAttr(host, s_T);
        return view == NULL ? NULL : array_of_view(self, view);
    }
    if (PyErr_Occurred()) return NULL;
    PyObject *property = method_of_array(s_T);
    if (property == NULL) return NULL;
    PyObject *result = Py_TYPE(property)->tp_descr_get(property, self, (PyObject *)Py_TYPE(self));
    Py_DECREF(property);
    return result;
}

static PyNumberMethods number_methods = {
    .nb_add = add, .nb_subtract = subtract, .nb_multiply = multiply, .nb_true_divide = divide};
static PyMappingMethods mapping_methods = {.mp_subscript = get_item};
static PyMethodDef operators_methods[] = {
    {"reshape", (PyCFunction)(void (*)(void))reshape, METH_FASTCALL | METH_KEYWORDS,
     "reshape($self, /, *args, order='C', out_sharding=None)\n--\n\nThe elements in another shape."},
    {NULL}};
static PyGetSetDef operators_properties[] = {{"T", get_T, NULL, "The array with its axes in reverse order."}, {NULL}};

static PyTypeObject operators_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax.core._bind.Operators",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The operators of concrete arrays: the base of `DeviceArray`.",
    .tp_new = PyType_GenericNew,
    .tp_as_number = &number_methods,
    .tp_as_mapping = &mapping_methods,
    .tp_richcompare = compare,
    .tp_methods = operators_methods,
    .tp_getset = operators_properties,
};

/* set_operators(Array, eager trace, config, ShapedArray, its instances, numpy.dtype, remembered numbers,
{"__add__": {dtype: primitive}, …}) */
static PyObject *set_operators(PyObject *module, PyObject *args) {
    PyObject *dtype, *tables;
    if (!PyArg_ParseTuple(args, "OOOOO!O!O!O!", &plain, &eager_trace, &config, &shaped_array, &PyDict_Type, &interned,
                          &PyType_Type, &dtype, &PyDict_Type, &numbers, &PyDict_Type, &tables))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) Py_INCREF(PyTuple_GET_ITEM(args, i)); /* forever */
    dtype_type = (PyTypeObject *)dtype;
    shape_slot = slot_of(shaped_array, "shape");
    dtype_slot = slot_of(shaped_array, "dtype");
    weak_slot = slot_of(shaped_array, "weak_type");
    size_slot = slot_of(shaped_array, "size");
    if (shape_slot < 0 || dtype_slot < 0 || weak_slot < 0 || size_slot < 0) return NULL;
    for (int which = 0; which < OPERATORS; which++) {
        operators[which][2] = Py_XNewRef(PyDict_GetItem(tables, operators[which][0]));
        if (operators[which][2] == NULL || !PyDict_CheckExact(operators[which][2]))
            return PyErr_Format(PyExc_TypeError, "no primitives for %R", operators[which][0]);
    }
    Py_RETURN_NONE;
}

static int ready_operators(void) {
    struct { PyObject **where; const char *text; } names[] = {
        {&s_shape, "shape"}, {&s_reshape, "reshape"}, {&s_copy, "copy"}, {&s_T, "T"},
        {&s_getitem, "__getitem__"}, {&s_limit, "host_size_limit"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if ((*names[i].where = PyUnicode_InternFromString(names[i].text)) == NULL) return -1;
    for (int which = 0; which < OPERATORS; which++) {
        for (int side = 0; side < 2; side++)
            if ((operators[which][side] = PyUnicode_InternFromString(operator_names[which][side])) == NULL) return -1;
        if ((operators[which][2] = PyDict_New()) == NULL) return -1; /* nothing is known yet */
    }
    return PyType_Ready(&operators_type);
}

#endif
