/* `StagingTrace.process` for operations with one result: the equation, its types and the line of the user that it came
from. interpreters/staging.py tells what each step means; operations that `stage` themselves are left to it. */

#ifndef PURAX_STAGING_H
#define PURAX_STAGING_H

#define CODES 1024 /* a power of two */

static PyTypeObject *staging_type, *staged_type, *var_type, *equation_type, *location_type;
static PyObject *counter, *inferred, *source_names, *code_is_internal; /* see `set_staging` */
static struct {
    Py_ssize_t equations, owner, variable, aval, var_aval, var_count, invars, outvars, primitive, params, source, scope;
} staged; /* slots of `StagingTrace`, `StagedTracer`, `Var` and `JaxprEqn` */
static PyObject *s_runs_itself, *s_multiple_results, *s_atom, *s_aval, *s_infer_checked, *s_location, *s_scope;
static _Thread_local ThreadValues known_names;

/* Code objects that were met lately, which are kept, and whether they are purax's own. */
static struct { PyCodeObject *code; int is_internal; } codes[CODES];

static int is_internal(PyCodeObject *code) {
    size_t at = ((size_t)code >> 5) & (CODES - 1);
    if (codes[at].code != code) {
        PyObject *answer = PyObject_CallOneArg(code_is_internal, (PyObject *)code);
        if (answer == NULL) return -1;
        codes[at].is_internal = answer == Py_True;
        Py_DECREF(answer);
        Py_INCREF(code);
        Py_XSETREF(codes[at].code, code);
    }
    return codes[at].is_internal;
}

/* forget_codes(): what is purax's own has changed. */
static PyObject *forget_codes(PyObject *module, PyObject *nothing) {
    for (int i = 0; i < CODES; i++) Py_CLEAR(codes[i].code);
    Py_RETURN_NONE;
}

/* The line of the user's code that is running now, as a `Location`; None if all frames are purax's. */
static PyObject *user_location(void) {
    PyObject *found = thread_value(&known_names, source_names, s_location);
    if (found == NULL || found != Py_None) return found;
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int internal = is_internal(code);
        if (internal == 0) {
            PyObject *parts = Py_BuildValue("((OiOO))", code->co_filename, PyFrame_GetLineNumber(frame), code->co_name,
                                            Py_False);
            Py_SETREF(found, parts == NULL ? NULL : PyTuple_Type.tp_new(location_type, parts, NULL));
            Py_XDECREF(parts);
        } else if (internal < 0)
            Py_CLEAR(found);
        Py_DECREF(code);
        if (internal <= 0) break;
        Py_SETREF(frame, PyFrame_GetBack(frame));
    }
    Py_XDECREF(frame);
    return found;
}

/* An instance of a class that has nothing but slots, all empty. */
static PyObject *instance(PyTypeObject *type) { return type->tp_alloc(type, 0); }

static PyObject *new_variable(PyObject *aval) {
    PyObject *var = instance(var_type);
    if (var == NULL) return NULL;
    SLOT(var, staged.var_aval) = Py_NewRef(aval);
    if ((SLOT(var, staged.var_count) = PyIter_Next(counter)) == NULL) Py_CLEAR(var);
    return var;
}

/* `infer_checked` of a primitive. */
static PyObject *inferred_type(PyObject *self, PyObject *avals, PyObject *params) {
    Py_ssize_t at = 0, place = 2;
    PyObject *key = PyTuple_New(2 + PyDict_GET_SIZE(params)), *name, *value;
    if (key == NULL) return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(self));
    PyTuple_SET_ITEM(key, 1, Py_NewRef(avals));
    while (PyDict_Next(params, &at, &name, &value)) {
        PyObject *part = exact(value), *item = part == NULL ? NULL : PyTuple_Pack(2, name, part);
        Py_XDECREF(part);
        if (item == NULL) {
            Py_DECREF(key);
            return NULL;
        }
        PyTuple_SET_ITEM(key, place++, item);
    }
    PyObject *aval = Py_XNewRef(PyDict_GetItemWithError(inferred, key));
    Py_DECREF(key);
    if (aval != NULL) return aval;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) return NULL;
    PyErr_Clear(); /* a parameter that cannot be hashed */
    return PyObject_CallMethodObjArgs(self, s_infer_checked, avals, params, NULL);
}

/* Whether an attribute of a primitive is False; -1 for an error. */
static int is_false(PyObject *self, PyObject *name) {
    PyObject *value = PyObject_GetAttr(self, name);
    Py_XDECREF(value);
    return value == NULL ? -1 : value == Py_False;
}

/* Records an operation, whose parameters are `names` with their values after the operands, or else `params`. NULL
without an error: it is left to Python. */
static PyObject *record(PyObject *trace, PyObject *self, PyObject *const *operands, Py_ssize_t count, PyObject *names,
                        PyObject *params) {
    int is_plain = is_false(self, s_runs_itself);
    if (is_plain == 1) is_plain = is_false(self, s_multiple_results);
    if (is_plain != 1) return NULL;
    PyObject *atoms = PyList_New(count), *avals = PyTuple_New(count), *outvars = PyList_New(1);
    PyObject *aval = NULL, *var = NULL, *location = NULL, *scope = NULL, *equation = NULL, *tracer = NULL;
    params = params == NULL ? PyDict_New() : Py_NewRef(params);
    if (atoms == NULL || avals == NULL || params == NULL || outvars == NULL) goto end;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = operands[i], *atom, *type;
        if (Py_IS_TYPE(x, staged_type) && SLOT(x, staged.owner) == trace) {
            atom = Py_NewRef(SLOT(x, staged.variable));
            type = Py_NewRef(SLOT(x, staged.aval));
        } else {
            atom = PyObject_CallMethodOneArg(trace, s_atom, x);
            type = atom == NULL ? NULL : PyObject_GetAttr(atom, s_aval);
        }
        if (atom != NULL) PyList_SET_ITEM(atoms, i, atom);
        if (type == NULL) goto end;
        PyTuple_SET_ITEM(avals, i, type);
    }
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(params, PyTuple_GET_ITEM(names, i), operands[count + i]) < 0) goto end;
    if ((aval = inferred_type(self, avals, params)) == NULL) goto end;
    if ((location = user_location()) == NULL) goto end;
    if ((scope = thread_value(&known_names, source_names, s_scope)) == NULL) goto end;
    if ((var = new_variable(aval)) == NULL || (equation = instance(equation_type)) == NULL) goto end;
    PyList_SET_ITEM(outvars, 0, Py_NewRef(var));
    SLOT(equation, staged.invars) = Py_NewRef(atoms);
    SLOT(equation, staged.outvars) = Py_NewRef(outvars);
    SLOT(equation, staged.primitive) = Py_NewRef(self);
    SLOT(equation, staged.params) = Py_NewRef(params);
    SLOT(equation, staged.source) = Py_NewRef(location);
    SLOT(equation, staged.scope) = Py_NewRef(scope);
    if (PyList_Append(SLOT(trace, staged.equations), equation) < 0 || (tracer = instance(staged_type)) == NULL) goto end;
    SLOT(tracer, staged.owner) = Py_NewRef(trace);
    SLOT(tracer, staged.variable) = Py_NewRef(var);
    SLOT(tracer, staged.aval) = Py_NewRef(aval);
end:
    Py_XDECREF(atoms);
    Py_XDECREF(avals);
    Py_XDECREF(params);
    Py_XDECREF(outvars);
    Py_XDECREF(aval);
    Py_XDECREF(var);
    Py_XDECREF(location);
    Py_XDECREF(scope);
    Py_XDECREF(equation);
    return tracer;
}

/* record_operation(trace, primitive, operands, params) -> the result, or None: it is left to Python */
static PyObject *record_operation(PyObject *module, PyObject *args) {
    PyObject *trace, *primitive, *operands, *params;
    if (!PyArg_ParseTuple(args, "OOO!O!", &trace, &primitive, &PyTuple_Type, &operands, &PyDict_Type, &params))
        return NULL;
    PyObject *result = record(trace, primitive, &PyTuple_GET_ITEM(operands, 0), PyTuple_GET_SIZE(operands), NULL, params);
    return result == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : result;
}

/* user_location() of core/source.py */
static PyObject *find_user_location(PyObject *module, PyObject *nothing) { return user_location(); }

/* set_staging(StagingTrace, StagedTracer, Var, JaxprEqn, Location, the count of variables, the dict of types that were
inferred, source.names, source.code_is_internal) */
static PyObject *set_staging(PyObject *module, PyObject *args) {
    PyObject *trace, *tracer, *var, *equation, *location;
    if (!PyArg_ParseTuple(args, "OOOOOOO!OO", &trace, &tracer, &var, &equation, &location, &counter, &PyDict_Type,
                          &inferred, &source_names, &code_is_internal))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) Py_INCREF(PyTuple_GET_ITEM(args, i)); /* forever */
    struct { Py_ssize_t *where; PyObject *type; const char *name; } all[] = {
        {&staged.equations, trace, "equations"}, {&staged.owner, tracer, "owner"},
        {&staged.variable, tracer, "variable"}, {&staged.aval, tracer, "aval"}, {&staged.var_aval, var, "aval"},
        {&staged.var_count, var, "count"}, {&staged.invars, equation, "invars"}, {&staged.outvars, equation, "outvars"},
        {&staged.primitive, equation, "primitive"}, {&staged.params, equation, "params"},
        {&staged.source, equation, "source"}, {&staged.scope, equation, "scope"}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if ((*all[i].where = slot_of(all[i].type, all[i].name)) < 0) return NULL;
    staged_type = (PyTypeObject *)tracer;
    var_type = (PyTypeObject *)var;
    equation_type = (PyTypeObject *)equation;
    location_type = (PyTypeObject *)location;
    staging_type = (PyTypeObject *)trace;
    Py_RETURN_NONE;
}

static int ready_staging(void) {
    struct { PyObject **where; const char *text; } names[] = {
        {&s_runs_itself, "runs_itself"}, {&s_multiple_results, "multiple_results"}, {&s_atom, "atom"},
        {&s_aval, "aval"}, {&s_infer_checked, "infer_checked"}, {&s_location, "location"}, {&s_scope, "scope"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if ((*names[i].where = PyUnicode_InternFromString(names[i].text)) == NULL) return -1;
    return 0;
}

#endif
