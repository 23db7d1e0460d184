/* `exact` of core/exact.py, for what most parameters of operations are; other values are left to it. */

#ifndef PURAX_EXACT_H
#define PURAX_EXACT_H

#include <Python.h>

static PyObject *exact_in_python, *exact_true, *exact_false; /* see `set_exact` */
static PyTypeObject *exact_dtype;

/* Whether a value is its own key; 0 if that is for others to say, -1: an error. */
static int is_own_key(PyObject *value) {
    if (PyLong_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || value == Py_None)
        return 1;
    if (PyTuple_CheckExact(value)) {
        int answer = 1;
        if (Py_EnterRecursiveCall(" in a key")) return -1;
        for (Py_ssize_t i = 0; answer == 1 && i < PyTuple_GET_SIZE(value); i++)
            answer = is_own_key(PyTuple_GET_ITEM(value, i));
        Py_LeaveRecursiveCall();
        return answer;
    }
    if (PyBool_Check(value)) return 0; /* int's comparison */
    return Py_TYPE(value)->tp_richcompare == PyBaseObject_Type.tp_richcompare || PyObject_TypeCheck(value, exact_dtype);
}

/* The key that only the same value has, as a new reference. */
static PyObject *exact(PyObject *value) {
    if (value == Py_True) return Py_NewRef(exact_true);
    if (value == Py_False) return Py_NewRef(exact_false);
    int is_own = is_own_key(value);
    if (is_own) return is_own < 0 ? NULL : Py_NewRef(value);
    if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        if (number != 0 && number == number) return PyTuple_Pack(2, (PyObject *)&PyFloat_Type, value);
    }
    if (!PyTuple_Check(value)) return PyObject_CallOneArg(exact_in_python, value);
    if (Py_EnterRecursiveCall(" in a key")) return NULL;
    PyObject *key = PyTuple_New(1 + PyTuple_GET_SIZE(value));
    if (key != NULL) PyTuple_SET_ITEM(key, 0, Py_NewRef(Py_TYPE(value)));
    for (Py_ssize_t i = 0; key != NULL && i < PyTuple_GET_SIZE(value); i++) {
        PyObject *part = exact(PyTuple_GET_ITEM(value, i));
        if (part == NULL)
            Py_CLEAR(key);
        else
            PyTuple_SET_ITEM(key, 1 + i, part);
    }
    Py_LeaveRecursiveCall();
    return key;
}

/* set_exact(exact in Python, numpy.dtype) */
static PyObject *set_exact(PyObject *module, PyObject *args) {
    PyObject *function, *dtype;
    if (!PyArg_ParseTuple(args, "OO!", &function, &PyType_Type, &dtype)) return NULL;
    exact_in_python = Py_NewRef(function); /* forever, as the others */
    exact_dtype = (PyTypeObject *)Py_NewRef(dtype);
    exact_true = PyObject_CallOneArg(function, Py_True);
    exact_false = PyObject_CallOneArg(function, Py_False);
    if (exact_true == NULL || exact_false == NULL) return NULL;
    Py_RETURN_NONE;
}

#endif
