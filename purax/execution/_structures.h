/* The structure of arguments that are dicts, lists and tuples of arrays: a call whose arguments are built as those of the
calls before it was need not have it worked out again.

A structure is told by the path of a walk over it: the kinds of containers, their sizes, and the keys of dicts, which are
the same objects. What `flatten` says of it is then known, too: the order of the leaves, and the tree. */

#ifndef PURAX_STRUCTURES_H
#define PURAX_STRUCTURES_H

#define LONGEST_PATH 4096

/* A walk over the arguments of a call; one at a time, since it calls no Python. */
static struct {
    const void *path[LONGEST_PATH];
    PyObject *leaves[LONGEST_PATH]; /* borrowed */
    Py_ssize_t length, leaf_count;
} walked;

typedef struct {
    const void **path;
    Py_ssize_t length;
    size_t last;    /* a hash of the path of the last call */
    PyObject *keys; /* list: what is on the path of dicts' keys, so that these live */
    PyObject *tree; /* what `flatten` makes of it */
    PyObject *order; /* list of int: the place on the walk of each leaf */
} Structure;

static PyObject *order_of_leaves; /* see `set_up_structures` */

/* Adds what `x` is made of to the walk. 0: it is of another kind, or too large. */
static int walk(PyObject *x) {
    if (walked.length + 2 >= LONGEST_PATH) return 0;
    if (is_simple(x)) {
        walked.path[walked.length++] = NULL;
        walked.leaves[walked.leaf_count++] = x;
        return 1;
    }
    walked.path[walked.length++] = x == Py_None ? (void *)x : (void *)Py_TYPE(x);
    if (x == Py_None) return 1;
    int is_tuple = PyTuple_CheckExact(x);
    if (is_tuple || PyList_CheckExact(x)) {
        Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(x) : PyList_GET_SIZE(x);
        walked.path[walked.length++] = (void *)count;
        for (Py_ssize_t i = 0; i < count; i++)
            if (!walk(is_tuple ? PyTuple_GET_ITEM(x, i) : PyList_GET_ITEM(x, i))) return 0;
        return 1;
    }
    if (!PyDict_CheckExact(x)) return 0;
    walked.path[walked.length++] = (void *)PyDict_GET_SIZE(x);
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Next(x, &at, &key, &value)) {
        if (walked.length + 2 >= LONGEST_PATH) return 0;
        walked.path[walked.length++] = key;
        if (!walk(value)) return 0;
    }
    return 1;
}

/* Walks over arguments by position, if there is nothing else. */
static int walk_over(PyObject *args) {
    walked.length = walked.leaf_count = 0;
    return walk(args);
}

/* Whether the arguments that were just walked over are built as is known. */
static int is_known(Structure *known) {
    return known->tree != NULL && known->length == walked.length &&
           memcmp(known->path, walked.path, walked.length * sizeof(void *)) == 0;
}

static void forget_structure(Structure *known) {
    PyMem_Free(known->path);
    known->path = NULL;
    known->length = 0;
    Py_CLEAR(known->keys);
    Py_CLEAR(known->tree);
    Py_CLEAR(known->order);
}

/* The keys of dicts in `x`, one after the other. */
static int add_keys(PyObject *keys, PyObject *x) {
    Py_ssize_t at = 0;
    PyObject *key, *value;
    if (PyDict_CheckExact(x))
        while (PyDict_Next(x, &at, &key, &value))
            if (PyList_Append(keys, key) < 0 || add_keys(keys, value) < 0) return -1;
    for (Py_ssize_t i = 0; PyTuple_CheckExact(x) && i < PyTuple_GET_SIZE(x); i++)
        if (add_keys(keys, PyTuple_GET_ITEM(x, i)) < 0) return -1;
    for (Py_ssize_t i = 0; PyList_CheckExact(x) && i < PyList_GET_SIZE(x); i++)
        if (add_keys(keys, PyList_GET_ITEM(x, i)) < 0) return -1;
    return 0;
}

/* Remembers how arguments are built that were walked over, and that `flatten` gave `tree` for, if the last ones were so,
too. -1: an error. */
static int remember_structure(Structure *known, PyObject *args, PyObject *tree) {
    size_t hash = (size_t)walked.length;
    for (Py_ssize_t i = 0; i < walked.length; i++) hash = (hash ^ (size_t)walked.path[i]) * 1099511628211u;
    if (known->last != hash) {
        known->last = hash;
        return 0;
    }
    forget_structure(known);
    Py_ssize_t length = walked.length, count = walked.leaf_count;
    if ((known->path = PyMem_Malloc(length * sizeof(void *))) == NULL) return PyErr_NoMemory(), -1;
    memcpy(known->path, walked.path, length * sizeof(void *));
    known->length = length;
    if ((known->keys = PyList_New(0)) == NULL || add_keys(known->keys, args) < 0) return -1;
    PyObject *order = PyObject_CallOneArg(order_of_leaves, args);
    if (order == NULL) return -1;
    if (PyList_CheckExact(order) && PyList_GET_SIZE(order) == count) {
        known->order = order;
        known->tree = Py_NewRef(tree);
    } else
        Py_DECREF(order);
    return 0;
}

/* set_up_structures(order_of_leaves) */
static PyObject *set_up_structures(PyObject *module, PyObject *function) {
    order_of_leaves = Py_NewRef(function);
    Py_RETURN_NONE;
}

#endif
