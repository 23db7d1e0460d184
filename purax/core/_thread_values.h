/* Reading attributes of `threading.local` objects: their namespaces are looked up once per thread. */

#ifndef PURAX_THREAD_VALUES_H
#define PURAX_THREAD_VALUES_H

#include <Python.h>

typedef struct {
    uint64_t thread;     /* of which Python thread `namespace` is; their numbers are never used again */
    PyObject *namespace; /* kept alive by the thread itself */
} ThreadValues;

/* The attribute `name` of `local`, as a new reference; `known` is a thread-local variable for this object alone. */
static PyObject *thread_value(ThreadValues *known, PyObject *local, PyObject *name) {
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
    if (known->thread != thread) {
        PyObject *namespace = PyObject_GetAttrString(local, "__dict__");
        if (namespace == NULL) return NULL;
        known->namespace = namespace;
        known->thread = thread;
        Py_DECREF(namespace);
    }
    PyObject *value = PyDict_GetItemWithError(known->namespace, name);
    if (value != NULL) return Py_NewRef(value);
    return PyErr_Occurred() ? NULL : PyObject_GetAttr(local, name); /* what the class says */
}

/* Where a slot of a Python class lies in its instances; -1 if there is no such slot. */
static Py_ssize_t slot_of(PyObject *type, const char *name) {
    PyObject *descriptor = PyObject_GetAttrString(type, name);
    if (descriptor == NULL) return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type))
        offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s is not a slot", name);
    Py_DECREF(descriptor);
    return offset;
}

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

#endif
