/* The call of a compiled function, from its arguments to its results, for calls that need nothing new.

`Dispatch` does what the class of this name in `dispatch.py` does, which tells what each step means; that class is
used where this file could not be compiled. Whatever is not the common case (a miss, arrays that lie elsewhere, errors
to explain) is left to Python: `_call` of the function, or `run_at_home` of its compiled program. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "../core/_exact.h"
#include "../core/_thread_values.h"
#include "_loans.h"

#define MAX_NAMED 32

/* What a table holds per key; see `Entry` in dispatch.py. */
enum { GUARDS, CONSTANTS, OUT_TREE, RUNNER, EXECUTE, HANDLERS, AVALS, KEPT, TAKEN, DONATED, DEVICE, IS_ARRANGED, WITNESS, FIELDS };

static PyObject *current, *config, *eager, *flatten, *array_of_leaf, *array_of_own_leaf, *raise_explained;
static PyTypeObject *array_type, *placed_type, *numpy_type;
static Py_ssize_t aval_slot, host_slot, buffer_slot;
static PyObject *s_trace, *s_trace_key, *s_aval, *s_check, *s_call, *s_run_at_home, *s_buffer_on, *s_private_buffer_on,
    *s_consume, *s_unflatten, *s_arrange;

static _Thread_local ThreadValues known_current, known_config;

static int is_array(PyObject *x) { return Py_IS_TYPE(x, array_type) || Py_IS_TYPE(x, placed_type); }

static int is_simple(PyObject *x) {
    return is_array(x) || Py_IS_TYPE(x, numpy_type) || PyFloat_CheckExact(x) || PyLong_CheckExact(x);
}

#include "_structures.h"

typedef struct {
    PyObject_HEAD
    PyObject *table;            /* dict: key -> entry */
    PyObject *static_positions; /* tuple of int, negative ones count from the end */
    PyObject *static_names;     /* frozenset of str */
    char donates;
    Structure structure; /* how the arguments of the last calls were built */
} Dispatch;

/* A list and a tuple that grow: the leaves and the key of one call. Some leaves may still be NumPy's. */
typedef struct {
    PyObject *leaves, *key;
    Py_ssize_t leaf_count, key_count, numpy_count;
} Signature;

static void add_key(Signature *made, PyObject *part) {
    PyTuple_SET_ITEM(made->key, made->key_count++, Py_NewRef(part));
}

/* Adds a static value, told by its type and by what is equal to nothing but itself. 0: an error. */
static int add_static(Signature *made, PyObject *value) {
    PyObject *part = exact(value);
    if (part == NULL) return 0;
    add_key(made, (PyObject *)Py_TYPE(value));
    PyTuple_SET_ITEM(made->key, made->key_count++, part);
    return 1;
}

/* Adds a leaf, as an array, and its type. 0: it is not an array, which is for Python to say. */
static int add_leaf(Dispatch *self, Signature *made, PyObject *x) {
    if (is_array(x)) {
        PyList_SET_ITEM(made->leaves, made->leaf_count++, Py_NewRef(x));
        PyObject *aval = SLOT(x, aval_slot);
        if (aval == NULL) return 0;
        add_key(made, aval);
        return 1;
    }
    if (Py_IS_TYPE(x, numpy_type) && !self->donates) {
        PyObject *aval = type_of_numpy(x, PyTuple_GET_ITEM(made->key, 0));
        if (aval != NULL) {
            PyList_SET_ITEM(made->leaves, made->leaf_count++, Py_NewRef(x));
            add_key(made, aval);
            made->numpy_count++;
            return 1;
        }
        if (PyErr_Occurred()) return 0;
    }
    PyObject *array = PyObject_CallOneArg(self->donates ? array_of_own_leaf : array_of_leaf, x);
    if (array == NULL) return 0;
    PyList_SET_ITEM(made->leaves, made->leaf_count++, array);
    PyObject *aval = PyObject_GetAttr(array, s_aval);
    if (aval == NULL) return 0;
    PyTuple_SET_ITEM(made->key, made->key_count++, aval);
    return 1;
}

static int is_static_position(Dispatch *self, Py_ssize_t position, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->static_positions); i++) {
        Py_ssize_t each = PyLong_AsSsize_t(PyTuple_GET_ITEM(self->static_positions, i));
        if ((each < 0 ? each + count : each) == position) return 1;
    }
    return 0;
}

static int is_static_name(Dispatch *self, PyObject *name) {
    return PySet_GET_SIZE(self->static_names) && PySet_Contains(self->static_names, name) == 1;
}

/* Arguments by name, sorted as trees sort them. 0: too many. */
static int sort_named(PyObject *kwargs, PyObject **names, PyObject **values) {
    Py_ssize_t at = 0, count = 0;
    PyObject *name, *value;
    if (kwargs == NULL) return 1;
    if (PyDict_GET_SIZE(kwargs) > MAX_NAMED) return 0;
    while (PyDict_Next(kwargs, &at, &name, &value)) {
        Py_ssize_t place = count++;
        for (; place > 0 && PyUnicode_Compare(names[place - 1], name) > 0; place--) {
            names[place] = names[place - 1];
            values[place] = values[place - 1];
        }
        names[place] = name;
        values[place] = value;
    }
    return 1;
}

/* The leaves and the key of a call whose arguments are trees as they were before, just walked over. */
static int sign_known(Dispatch *self, PyObject *trace_key, Signature *made) {
    Py_ssize_t count = walked.leaf_count;
    /* Converting a leaf may run Python, and so another walk; so may making a list, by collecting garbage. */
    PyObject **found = PyMem_New(PyObject *, count + 1);
    if (found == NULL) return PyErr_NoMemory(), 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyList_GET_ITEM(self->structure.order, i));
        found[i] = Py_NewRef(walked.leaves[place]);
    }
    PyObject *tree = Py_NewRef(self->structure.tree);
    int done = (made->leaves = PyList_New(count)) != NULL && (made->key = PyTuple_New(2 + count)) != NULL;
    if (done) {
        add_key(made, trace_key);
        add_key(made, tree);
    }
    for (Py_ssize_t i = 0; done && i < count; i++) done = add_leaf(self, made, found[i]);
    Py_DECREF(tree);
    for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(found[i]);
    PyMem_Free(found);
    return done;
}

/* The leaves and the key of a call whose arguments are trees. 1: done, 0: left to Python. */
static int sign_trees(Dispatch *self, PyObject *args, PyObject **names, PyObject **values, Py_ssize_t named,
                      PyObject *trace_key, Signature *made) {
    Py_ssize_t count = PyTuple_GET_SIZE(args), static_count = 0;
    int done = 0;
    int is_walked = named == 0 && PyTuple_GET_SIZE(self->static_positions) == 0 && walk_over(args);
    if (is_walked && is_known(&self->structure)) return sign_known(self, trace_key, made);
    PyObject *dynamic = PyTuple_New(count), *dynamic_named = PyDict_New(), *both = NULL, *flat = NULL;
    if (dynamic == NULL || dynamic_named == NULL) goto end;
    for (Py_ssize_t i = 0; i < count; i++) {
        int is_static = is_static_position(self, i, count);
        static_count += is_static;
        PyTuple_SET_ITEM(dynamic, i, Py_NewRef(is_static ? Py_None : PyTuple_GET_ITEM(args, i)));
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        if (is_static_name(self, names[i]))
            static_count++;
        else if (PyDict_SetItem(dynamic_named, names[i], values[i]) < 0)
            goto end;
    }
    if ((both = PyTuple_Pack(2, dynamic, dynamic_named)) == NULL) goto end;
    if ((flat = PyObject_CallFunctionObjArgs(flatten, both, Py_None, NULL)) == NULL) goto end;
    if (is_walked && walk_over(args) &&
        remember_structure(&self->structure, args, PyTuple_GET_ITEM(flat, 1)) < 0)
        goto end;
    PyObject *leaves = PyTuple_GET_ITEM(flat, 0);
    Py_ssize_t leaf_count = PyList_GET_SIZE(leaves);
    if ((made->leaves = PyList_New(leaf_count)) == NULL) goto end;
    if ((made->key = PyTuple_New(2 + 3 * static_count + leaf_count)) == NULL) goto end;
    add_key(made, trace_key);
    add_key(made, PyTuple_GET_ITEM(flat, 1));
    for (Py_ssize_t i = 0; i < count; i++)
        if (static_count && is_static_position(self, i, count)) {
            add_key(made, Py_None);
            if (!add_static(made, PyTuple_GET_ITEM(args, i))) goto end;
        }
    for (Py_ssize_t i = 0; static_count && i < named; i++)
        if (is_static_name(self, names[i])) {
            add_key(made, names[i]);
            if (!add_static(made, values[i])) goto end;
        }
    for (Py_ssize_t i = 0; i < leaf_count; i++)
        if (!add_leaf(self, made, PyList_GET_ITEM(leaves, i))) goto end;
    done = 1;
end:
    Py_XDECREF(dynamic);
    Py_XDECREF(dynamic_named);
    Py_XDECREF(both);
    Py_XDECREF(flat);
    return done;
}

/* The leaves and the key of a call. 1: done, 0: left to Python, perhaps with an error set. */
static int sign(Dispatch *self, PyObject *args, PyObject *kwargs, Signature *made) {
    PyObject *names[MAX_NAMED], *values[MAX_NAMED];
    Py_ssize_t count = PyTuple_GET_SIZE(args), named = kwargs == NULL ? 0 : PyDict_GET_SIZE(kwargs);
    Py_ssize_t leaf_count = 0, key_count = 1;
    int done = 0, has_static = PyTuple_GET_SIZE(self->static_positions) > 0, simple = 1;
    if (!sort_named(kwargs, names, values)) return 0;
    for (Py_ssize_t i = 0; i < count && simple; i++) {
        int is_static = has_static && is_static_position(self, i, count);
        simple = is_static || is_simple(PyTuple_GET_ITEM(args, i));
        leaf_count += !is_static;
        key_count += is_static ? 2 : 1;
    }
    for (Py_ssize_t i = 0; i < named && simple; i++) {
        int is_static = is_static_name(self, names[i]);
        simple = is_static || is_simple(values[i]);
        leaf_count += !is_static;
        key_count += is_static ? 3 : 2;
    }
    PyObject *trace_key = thread_value(&known_config, config, s_trace_key);
    if (trace_key == NULL) return 0;
    if (!simple) {
        done = sign_trees(self, args, names, values, named, trace_key, made);
        goto end;
    }
    if ((made->leaves = PyList_New(leaf_count)) == NULL) goto end;
    if ((made->key = PyTuple_New(key_count)) == NULL) goto end;
    add_key(made, trace_key);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i);
        if (has_static && is_static_position(self, i, count)) {
            if (!add_static(made, x)) goto end;
        } else if (!add_leaf(self, made, x))
            goto end;
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        add_key(made, names[i]);
        if (is_static_name(self, names[i])) {
            if (!add_static(made, values[i])) goto end;
        } else if (!add_leaf(self, made, values[i]))
            goto end;
    }
    done = 1;
end:
    Py_DECREF(trace_key);
    return done;
}

/* The key has as many places as were counted; what a failure left empty must not be seen by anyone. */
static void drop(Signature *made) {
    Py_CLEAR(made->leaves);
    Py_CLEAR(made->key);
}

/* Whether an array that is given away stands among the operands once more; -1 for want of memory. */
static int is_given_twice(PyObject *operands, PyObject *donated) {
    Py_ssize_t count = PyTuple_GET_SIZE(donated), total = PyList_GET_SIZE(operands), size = 8, given = 0, found = 0;
    while (size < 2 * count) size *= 2;
    PyObject **seen = PyMem_Calloc(size, sizeof(PyObject *));
    if (seen == NULL) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count + total; i++) {
        int is_donated = i < count;
        Py_ssize_t place = is_donated ? PyLong_AsSsize_t(PyTuple_GET_ITEM(donated, i)) : i - count;
        PyObject *x = PyList_GET_ITEM(operands, place);
        size_t at = ((size_t)x >> 4) & (size - 1);
        while (seen[at] != NULL && seen[at] != x) at = (at + 1) & (size - 1);
        if (!is_donated)
            found += seen[at] == x;
        else if (seen[at] == NULL) {
            seen[at] = x;
            given++;
        }
    }
    PyMem_Free(seen);
    return found > given;
}

static void replace_slot(PyObject *x, Py_ssize_t offset, PyObject *value) {
    PyObject *before = SLOT(x, offset);
    SLOT(x, offset) = Py_XNewRef(value);
    Py_XDECREF(before);
}

/* The buffers of the operands that the program takes; NULL without an error: left to Python. */
static PyObject *buffers_of(PyObject *entry, PyObject *operands) {
    PyObject *kept = PyTuple_GET_ITEM(entry, KEPT), *device = PyTuple_GET_ITEM(entry, DEVICE);
    PyObject *taken = PyTuple_GET_ITEM(entry, TAKEN), *donated = PyTuple_GET_ITEM(entry, DONATED);
    Py_ssize_t count = kept == Py_None ? PyList_GET_SIZE(operands) : PyTuple_GET_SIZE(kept);
    PyObject *buffers = PyList_New(count);
    if (buffers == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t place = kept == Py_None ? i : PyLong_AsSsize_t(PyTuple_GET_ITEM(kept, i));
        PyObject *x = PyList_GET_ITEM(operands, place);
        if (!Py_IS_TYPE(x, array_type)) goto leave;
        PyObject *buffer = SLOT(x, buffer_slot);
        if (buffer == NULL || buffer == Py_None) {
            if ((buffer = PyObject_CallMethodOneArg(x, s_buffer_on, device)) == NULL) goto leave;
        } else
            Py_INCREF(buffer);
        PyList_SET_ITEM(buffers, i, buffer);
    }
    Py_ssize_t donations = PyTuple_GET_SIZE(donated);
    if (donations && is_given_twice(operands, donated)) goto leave;
    for (Py_ssize_t i = 0; i < donations; i++) {
        PyObject *x = PyList_GET_ITEM(operands, PyLong_AsSsize_t(PyTuple_GET_ITEM(donated, i)));
        if (SLOT(x, host_slot) != Py_None) { /* its memory is shared with NumPy: XLA gets a copy to consume */
            PyObject *buffer = PyObject_CallMethodOneArg(x, s_private_buffer_on, device);
            if (buffer == NULL) goto leave;
            PyList_SetItem(buffers, PyLong_AsSsize_t(PyTuple_GET_ITEM(taken, i)), buffer);
        }
    }
    return buffers;
leave:
    Py_DECREF(buffers);
    return NULL;
}

/* The results of XLA as a list of arrays. */
static PyObject *arrays_of(PyObject *results, PyObject *avals) {
    Py_ssize_t count = PyTuple_GET_SIZE(avals);
    PyObject *arrays = PyList_New(count);
    for (Py_ssize_t i = 0; arrays != NULL && i < count; i++) {
        PyObject *array = array_type->tp_alloc(array_type, 0);
        if (array == NULL) {
            Py_CLEAR(arrays);
            break;
        }
        SLOT(array, aval_slot) = Py_NewRef(PyTuple_GET_ITEM(avals, i));
        SLOT(array, host_slot) = Py_NewRef(Py_None);
        SLOT(array, buffer_slot) = Py_NewRef(PyList_GET_ITEM(results, i));
        PyList_SET_ITEM(arrays, i, array);
    }
    return arrays;
}

/* Runs XLA's program; NULL without an error: left to Python. */
static PyObject *run_engine(PyObject *entry, PyObject *operands) {
    PyObject *buffers = buffers_of(entry, operands), *arrays = NULL, *results = NULL;
    if (buffers == NULL) return NULL;
    PyObject *started = PyObject_CallOneArg(PyTuple_GET_ITEM(entry, EXECUTE), buffers);
    if (started != NULL) {
        results = PyObject_CallMethodOneArg(started, s_consume, PyTuple_GET_ITEM(entry, HANDLERS));
        Py_DECREF(started);
    }
    if (results == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        PyErr_NormalizeException(&type, &error, &traceback);
        PyObject *runner = PyTuple_GET_ITEM(entry, RUNNER);
        Py_XDECREF(PyObject_CallFunctionObjArgs(raise_explained, runner, error, buffers, NULL));
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    }
    Py_DECREF(buffers);
    if (results == NULL) return NULL;
    if (!PyList_CheckExact(results) || PyList_GET_SIZE(results) < PyTuple_GET_SIZE(PyTuple_GET_ITEM(entry, AVALS))) {
        Py_DECREF(results);
        PyErr_SetString(PyExc_RuntimeError, "a program gave fewer results than it has");
        return NULL;
    }
    arrays = arrays_of(results, PyTuple_GET_ITEM(entry, AVALS));
    Py_DECREF(results);
    PyObject *donated = PyTuple_GET_ITEM(entry, DONATED);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(donated); i++) {
        PyObject *x = PyList_GET_ITEM(operands, PyLong_AsSsize_t(PyTuple_GET_ITEM(donated, i)));
        replace_slot(x, buffer_slot, Py_None);
        replace_slot(x, host_slot, Py_None);
    }
    if (arrays != NULL && PyTuple_GET_ITEM(entry, IS_ARRANGED) == Py_True) {
        PyObject *runner = PyTuple_GET_ITEM(entry, RUNNER);
        PyObject *arranged = PyObject_CallMethodObjArgs(runner, s_arrange, arrays, operands, NULL);
        Py_SETREF(arrays, arranged);
    }
    return arrays;
}

/* Replaces NumPy's among the leaves by arrays; those in memory that is lent are noted. 0: an error. */
static int make_arrays(PyObject *entry, Signature *made, Loan **lent, Py_ssize_t *lent_count) {
    for (Py_ssize_t i = 0; i < made->leaf_count && made->numpy_count; i++) {
        PyObject *x = PyList_GET_ITEM(made->leaves, i), *array = NULL;
        if (!Py_IS_TYPE(x, numpy_type)) continue;
        made->numpy_count--;
        if (PyTuple_GET_ITEM(entry, WITNESS) != Py_None && *lent_count < MOST_LOANS) {
            PyObject *aval = type_of_numpy(x, PyTuple_GET_ITEM(made->key, 0));
            Loan *loan = aval == NULL ? NULL : lend(aval, x);
            if (loan != NULL) {
                lent[(*lent_count)++] = loan;
                array = Py_NewRef(loan->array);
            }
        }
        if (array == NULL && !PyErr_Occurred()) array = PyObject_CallOneArg(array_of_leaf, x);
        if (array == NULL) return 0;
        PyList_SetItem(made->leaves, i, array);
    }
    return 1;
}

/* Gives memory that was lent to a call back, once its results are known. */
static void end_loans(PyObject *entry, PyObject *arrays, Loan **lent, Py_ssize_t count) {
    PyObject *witness = PyTuple_GET_ITEM(entry, WITNESS), *buffer = NULL;
    if (arrays != NULL && PyList_CheckExact(arrays) && witness != Py_None) {
        PyObject *result = PyList_GET_ITEM(arrays, PyLong_AsSsize_t(witness));
        if (Py_IS_TYPE(result, array_type)) buffer = SLOT(result, buffer_slot);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (buffer != NULL && buffer != Py_None) take_back(lent[i], SLOT(lent[i]->array, aval_slot), buffer);
        Py_DECREF(lent[i]);
    }
}

/* The results of a known call; NULL without an error: left to Python. */
static PyObject *run(PyObject *entry, Signature *made) {
    Loan *lent[MOST_LOANS];
    Py_ssize_t lent_count = 0;
    PyObject *leaves = made->leaves;
    PyObject *guards = PyTuple_GET_ITEM(entry, GUARDS), *constants, *operands, *arrays = NULL, *out = NULL;
    if (guards == Py_None)
        constants = Py_NewRef(PyTuple_GET_ITEM(entry, CONSTANTS));
    else {
        PyObject *check = PyObject_GetAttr(guards, s_check);
        constants = check == NULL ? NULL : PyObject_CallNoArgs(check);
        Py_XDECREF(check);
    }
    if (constants == NULL) return NULL;
    if (constants == Py_None) { /* something that the function reads has changed */
        Py_DECREF(constants);
        return NULL;
    }
    if (made->numpy_count && !make_arrays(entry, made, lent, &lent_count)) {
        Py_DECREF(constants);
        end_loans(entry, NULL, lent, lent_count);
        return NULL;
    }
    if (PyList_GET_SIZE(constants)) {
        operands = PySequence_Concat(constants, leaves);
        Py_DECREF(constants);
    } else {
        Py_DECREF(constants);
        operands = Py_NewRef(leaves);
    }
    if (operands == NULL) {
        end_loans(entry, NULL, lent, lent_count);
        return NULL;
    }
    if (PyTuple_GET_ITEM(entry, EXECUTE) != Py_None) arrays = run_engine(entry, operands);
    if (arrays == NULL && !PyErr_Occurred())
        arrays = PyObject_CallMethodOneArg(PyTuple_GET_ITEM(entry, RUNNER), s_run_at_home, operands);
    Py_DECREF(operands);
    if (lent_count) end_loans(entry, arrays, lent, lent_count);
    if (arrays == NULL) return NULL;
    PyObject *out_tree = PyTuple_GET_ITEM(entry, OUT_TREE);
    if (arrays != Py_None) {
        if (out_tree == Py_None)
            out = Py_NewRef(PyList_GET_ITEM(arrays, 0));
        else
            out = PyObject_CallMethodOneArg(out_tree, s_unflatten, arrays);
    }
    Py_DECREF(arrays);
    return out;
}

/* An error while looking for the program is for the slow way to find again, and to say well. */
static int forget_error(void) {
    if (!PyErr_Occurred()) return 1;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return 0;
    PyErr_Clear();
    return 1;
}

static PyObject *call(Dispatch *self, PyObject *args, PyObject *kwargs) {
    PyObject *trace = thread_value(&known_current, current, s_trace), *result = NULL;
    if (trace == NULL) return NULL;
    Py_DECREF(trace);
    if (trace == eager && self->table != NULL && PyDict_GET_SIZE(self->table)) {
        Signature made = {NULL, NULL, 0, 0, 0};
        PyObject *entry = NULL;
        if (sign(self, args, kwargs, &made)) entry = PyDict_GetItemWithError(self->table, made.key);
        if (entry != NULL) {
            Py_INCREF(entry);
            result = run(entry, &made);
            Py_DECREF(entry);
        } else if (!forget_error()) {
            drop(&made);
            return NULL;
        }
        drop(&made);
        if (result != NULL || PyErr_Occurred()) return result;
    }
    if (kwargs != NULL) return PyObject_CallMethodObjArgs((PyObject *)self, s_call, args, kwargs, NULL);
    PyObject *nothing = PyDict_New();
    if (nothing == NULL) return NULL;
    result = PyObject_CallMethodObjArgs((PyObject *)self, s_call, args, nothing, NULL);
    Py_DECREF(nothing);
    return result;
}

/* dispatch._key(args, kwargs): what the program of a call is found by, or None. */
static PyObject *key(Dispatch *self, PyObject *const *arguments, Py_ssize_t count) {
    Signature made = {NULL, NULL, 0, 0, 0};
    PyObject *found = Py_None;
    if (count != 2 || !PyTuple_Check(arguments[0]) || !PyDict_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "_key takes a tuple and a dict");
        return NULL;
    }
    if (sign(self, arguments[0], arguments[1], &made)) {
        found = made.key;
        if (PyObject_Hash(found) == -1) found = Py_None;
    }
    if (!forget_error()) {
        drop(&made);
        return NULL;
    }
    Py_INCREF(found);
    drop(&made);
    return found;
}

static int traverse(Dispatch *self, visitproc visit, void *arg) {
    Py_VISIT(self->table);
    Py_VISIT(self->static_positions);
    Py_VISIT(self->static_names);
    Py_VISIT(self->structure.keys);
    Py_VISIT(self->structure.tree);
    return 0;
}

static int clear(Dispatch *self) {
    Py_CLEAR(self->table);
    Py_CLEAR(self->static_positions);
    Py_CLEAR(self->static_names);
    forget_structure(&self->structure);
    return 0;
}

static void dealloc(Dispatch *self) {
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Dispatch *self = (Dispatch *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->table = PyDict_New();
    self->static_positions = PyTuple_New(0);
    self->static_names = PyFrozenSet_New(NULL);
    if (self->table == NULL || self->static_positions == NULL || self->static_names == NULL) Py_CLEAR(self);
    return (PyObject *)self;
}

/* set_static(positions: tuple, names: frozenset, donates: bool) */
static PyObject *set_static(Dispatch *self, PyObject *args) {
    PyObject *positions, *names;
    int donates;
    if (!PyArg_ParseTuple(args, "O!O!p", &PyTuple_Type, &positions, &PyFrozenSet_Type, &names, &donates)) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions); i++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, i)) == -1 && PyErr_Occurred()) return NULL;
    Py_XSETREF(self->static_positions, Py_NewRef(positions));
    Py_XSETREF(self->static_names, Py_NewRef(names));
    self->donates = (char)donates;
    Py_RETURN_NONE;
}

static PyMemberDef members[] = {{"_fast", T_OBJECT_EX, offsetof(Dispatch, table), READONLY, NULL}, {NULL}};
static PyMethodDef methods[] = {{"_key", (PyCFunction)(void (*)(void))key, METH_FASTCALL, NULL},
                                {"_set_static", (PyCFunction)set_static, METH_VARARGS, NULL},
                                {NULL}};

static PyTypeObject dispatch_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax.execution._dispatch.Dispatch",
    .tp_basicsize = sizeof(Dispatch),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A function that calls the program compiled for its arguments.",
    .tp_new = make,
    .tp_call = (ternaryfunc)call,
    .tp_traverse = (traverseproc)traverse,
    .tp_clear = (inquiry)clear,
    .tp_dealloc = (destructor)dealloc,
    .tp_members = members,
    .tp_methods = methods,
};

/* set_up(current, config, eager, flatten, array_of_leaf, array_of_own_leaf, raise_explained, DeviceArray, PlacedArray,
   numpy.ndarray): what the calls work with. */
static PyObject *set_up(PyObject *module, PyObject *args) {
    if (!PyArg_ParseTuple(args, "OOOOOOOO!O!O!", &current, &config, &eager, &flatten, &array_of_leaf,
                          &array_of_own_leaf, &raise_explained, &PyType_Type, &array_type, &PyType_Type, &placed_type,
                          &PyType_Type, &numpy_type))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) Py_INCREF(PyTuple_GET_ITEM(args, i)); /* forever */
    aval_slot = slot_of((PyObject *)array_type, "aval");
    host_slot = slot_of((PyObject *)array_type, "_host");
    buffer_slot = slot_of((PyObject *)array_type, "_buffer");
    if (aval_slot < 0 || host_slot < 0 || buffer_slot < 0) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_up", set_up, METH_VARARGS, NULL}, {"set_up_loans", set_up_loans, METH_VARARGS, NULL},
    {"set_exact", set_exact, METH_VARARGS, NULL}, {"set_up_structures", set_up_structures, METH_O, NULL}, {NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_dispatch", "See purax.execution.dispatch.", -1, functions};

PyMODINIT_FUNC PyInit__dispatch(void) {
    struct {
        PyObject **where;
        const char *text;
    } names[] = {{&s_trace, "trace"}, {&s_trace_key, "trace_key"}, {&s_aval, "aval"}, {&s_check, "check"},
                 {&s_call, "_call"}, {&s_run_at_home, "run_at_home"}, {&s_buffer_on, "buffer_on"},
                 {&s_private_buffer_on, "private_buffer_on"}, {&s_consume, "consume_with_handlers"},
                 {&s_unflatten, "unflatten"}, {&s_arrange, "_arrange"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if ((*names[i].where = PyUnicode_InternFromString(names[i].text)) == NULL) return NULL;
    if (PyType_Ready(&dispatch_type) < 0 || ready_loans() < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddObjectRef(module, "Dispatch", (PyObject *)&dispatch_type) < 0) Py_CLEAR(module);
    return module;
}
