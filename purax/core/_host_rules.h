/* `HostRules`: how a trace of `jvp`, `linearize` or `batch` handles an operation on small arrays with a rule that was
recorded as NumPy functions, and how such steps run backwards. execution/host_rules.py tells what each step means;
what it has not got yet, or cannot do with values on the host, is left to Python. */

#ifndef PURAX_HOST_RULES_H
#define PURAX_HOST_RULES_H

enum { JVP, LINEARIZE, BATCH };
#define MAX_RESIDUALS 31

typedef struct {
    PyObject_HEAD
    int kind;
    PyObject *name, *make;
    PyTypeObject *tracer;
    Py_ssize_t owner_slot, aval_slot, value_slot, extra_slot; /* of a tracer; the last is its tangent or batch axis */
} HostRules;

static PyTypeObject host_rules_type;
static PyObject *settings, *rows_quiet, *aval_of, *rules, *learn; /* see `set_host_rules` */
static PyTypeObject *tangent_type, *step_type;
static PyObject *addition;
static struct {
    Py_ssize_t tape, equations, owner, variable, aval, rule, residuals, invars, outvars, back, key;
} slots; /* of `LinearizeTrace`, `TapeTrace`, `LinearTracer`, `HostStep` and `LinearRule` */
static PyObject *s_trace_key, *s_peek, *s_ndim, *s_bind, *s_number;
static _Thread_local ThreadValues known_settings, known_rows_quiet;

/* The value of a concrete array on the host, borrowed from it; NULL without an error: it is elsewhere. */
static PyObject *peek(PyObject *x) {
    PyObject *host = SLOT(x, host_slot);
    if (host != NULL && host != Py_None) return host;
    PyObject *seen = PyObject_CallMethodNoArgs(x, s_peek);
    if (seen == NULL) return NULL;
    Py_DECREF(seen); /* the array keeps what it shows */
    host = SLOT(x, host_slot);
    return host == Py_None ? NULL : host;
}

static PyObject *make_tracer(HostRules *self, PyObject *trace, PyObject *value, PyObject *extra, PyObject *aval) {
    PyObject *tracer = instance(self->tracer);
    if (tracer == NULL) return NULL;
    SLOT(tracer, self->owner_slot) = Py_NewRef(trace);
    SLOT(tracer, self->value_slot) = Py_NewRef(value);
    SLOT(tracer, self->extra_slot) = Py_NewRef(extra);
    SLOT(tracer, self->aval_slot) = Py_NewRef(aval);
    return tracer;
}

/* Puts a `HostStep` on the tape of a trace; the tangent that it gives. */
static PyObject *add_step(HostRules *self, PyObject *trace, PyObject *rule, PyObject *aval, PyObject *results,
                          PyObject *const *tracers, Py_ssize_t count) {
    PyObject *tape = SLOT(trace, slots.tape), *tangent = NULL, *invars = PyList_New(count), *outvars = PyList_New(1);
    PyObject *var = new_variable(aval), *step = instance(step_type);
    if (invars == NULL || outvars == NULL || var == NULL || step == NULL) goto end;
    for (Py_ssize_t i = 0; i < count; i++)
        PyList_SET_ITEM(invars, i, Py_NewRef(SLOT(SLOT(tracers[i], self->extra_slot), slots.variable)));
    PyList_SET_ITEM(outvars, 0, Py_NewRef(var));
    SLOT(step, slots.rule) = Py_NewRef(rule);
    SLOT(step, slots.invars) = Py_NewRef(invars);
    SLOT(step, slots.outvars) = Py_NewRef(outvars);
    if ((SLOT(step, slots.residuals) = PyList_GetSlice(results, 1, PyList_GET_SIZE(results))) == NULL) goto end;
    if (PyList_Append(SLOT(tape, slots.equations), step) < 0 || (tangent = instance(tangent_type)) == NULL) goto end;
    SLOT(tangent, slots.owner) = Py_NewRef(tape);
    SLOT(tangent, slots.variable) = Py_NewRef(var);
    SLOT(tangent, slots.aval) = Py_NewRef(aval);
end:
    Py_XDECREF(invars);
    Py_XDECREF(outvars);
    Py_XDECREF(var);
    Py_XDECREF(step);
    return tangent;
}

/* `finish` of jvp.py, linearize.py and vmap.py: the result with its tangent or batch axis. */
static PyObject *finish(HostRules *self, PyObject *trace, PyObject *array, PyObject *results, PyObject *const *tracers,
                        Py_ssize_t count, PyObject *rule) {
    PyObject *first = PyTuple_GET_ITEM(rule, 2), *second = PyTuple_GET_ITEM(rule, 3), *aval = SLOT(array, aval_slot);
    if (self->kind == BATCH) return make_tracer(self, trace, array, first, second);
    PyObject *tangent;
    if (self->kind == JVP)
        tangent = array_of(first, Py_NewRef(PyList_GET_ITEM(results, 1)));
    else if (second != Py_None)
        tangent = Py_NewRef(SLOT(tracers[PyLong_AsSsize_t(second)], self->extra_slot));
    else
        tangent = add_step(self, trace, first, aval, results, tracers, count);
    if (tangent == NULL) return NULL;
    PyObject *result = make_tracer(self, trace, array, tangent, aval);
    Py_DECREF(tangent);
    return result;
}

/* Runs a straight-line NumPy program; a list of arrays. */
static PyObject *run_row(PyObject *row, PyObject **values, Py_ssize_t count) {
    PyObject *context = thread_value(&known_rows_quiet, rows_quiet, s_context), *results = NULL;
    if (context == NULL) return NULL;
    if (PyContext_Enter(context) == 0) {
        results = PyObject_Vectorcall(row, values, count, NULL);
        if (PyContext_Exit(context) < 0) Py_CLEAR(results);
    }
    Py_DECREF(context);
    if (results != NULL && !PyList_CheckExact(results)) {
        PyErr_SetString(PyExc_TypeError, "a row of functions gives a list");
        Py_CLEAR(results);
    }
    return results;
}

/* What a rule for an operation is looked up by; fills in the values of the operands, as new references, and the own
tracers among these, borrowed. NULL without an error: it is not for such rules. */
static PyObject *read_operands(HostRules *self, PyObject *trace, PyObject *primitive, PyObject *const *operands,
                               Py_ssize_t count, Py_ssize_t named, PyObject **values, Py_ssize_t *filled,
                               PyObject **tracers, Py_ssize_t *moving) {
    for (Py_ssize_t i = 0; i < count; i++)
        if (Py_IS_TYPE(operands[i], self->tracer) && SLOT(operands[i], self->owner_slot) == trace)
            tracers[(*moving)++] = operands[i];
    if (*moving == 0) return NULL;
    PyObject *key = PyTuple_New(3 + 2 * count + 2 * named);
    if (key == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = operands[i], *mark = Py_None, *value = NULL, *aval = NULL;
        if (Py_IS_TYPE(x, self->tracer) && SLOT(x, self->owner_slot) == trace) {
            mark = self->kind == BATCH ? SLOT(x, self->extra_slot) : Py_True;
            x = SLOT(x, self->value_slot);
        }
        if (Py_IS_TYPE(x, array_type)) {
            if ((value = peek(x)) == NULL) goto leave;
            aval = Py_NewRef(SLOT(x, aval_slot));
        } else if (mark == Py_None && Py_IS_TYPE(x, numpy_type)) {
            PyObject *rank = PyObject_GetAttr(x, s_ndim);
            if (rank == NULL) goto leave;
            int is_number = PyLong_AsLong(rank) == 0;
            Py_DECREF(rank);
            if (!is_number || (aval = PyObject_CallOneArg(aval_of, x)) == NULL) goto leave;
            value = x;
            mark = s_number;
        } else
            goto leave;
        PyTuple_SET_ITEM(key, 3 + 2 * i, Py_NewRef(mark));
        PyTuple_SET_ITEM(key, 4 + 2 * i, aval);
        values[(*filled)++] = Py_NewRef(value);
    }
    for (Py_ssize_t i = 0; self->kind == JVP && i < *moving; i++) {
        PyObject *dx = SLOT(tracers[i], self->extra_slot), *value;
        if (!Py_IS_TYPE(dx, array_type) || SLOT(dx, aval_slot) != SLOT(tracers[i], self->aval_slot)) goto leave;
        if ((value = peek(dx)) == NULL) goto leave;
        values[(*filled)++] = Py_NewRef(value);
    }
    PyObject *trace_key = thread_value(&known_settings, settings, s_trace_key);
    if (trace_key == NULL) goto leave;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(self->name));
    PyTuple_SET_ITEM(key, 1, trace_key);
    PyTuple_SET_ITEM(key, 2, Py_NewRef(primitive));
    return key;
leave:
    Py_DECREF(key);
    return NULL;
}

/* `learn` of host_rules.py, as a new reference. */
static PyObject *learn_rule(HostRules *self, PyObject *key, Py_ssize_t count, PyObject *params) {
    PyObject *marks = PyTuple_New(count), *avals = PyTuple_New(count), *rule = NULL;
    if (marks == NULL || avals == NULL) goto end;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyTuple_SET_ITEM(marks, i, Py_NewRef(PyTuple_GET_ITEM(key, 3 + 2 * i)));
        PyTuple_SET_ITEM(avals, i, Py_NewRef(PyTuple_GET_ITEM(key, 4 + 2 * i)));
    }
    rule = PyObject_CallFunctionObjArgs(learn, key, self->make, PyTuple_GET_ITEM(key, 2), marks, avals, params, NULL);
end:
    Py_XDECREF(marks);
    Py_XDECREF(avals);
    return rule;
}

/* The result of an operation, whose parameters are `names` with their values after the operands, or else `params`.
NULL without an error: it is left to the rules of the primitive. Only a call with `params` counts towards a new rule. */
static PyObject *apply(HostRules *self, PyObject *trace, PyObject *primitive, PyObject *const *operands,
                       Py_ssize_t count, PyObject *names, PyObject *params) {
    PyObject *values[2 * MAX_OPERANDS], *tracers[MAX_OPERANDS], *result = NULL, *rule = NULL;
    Py_ssize_t filled = 0, moving = 0, at = 0;
    Py_ssize_t named = names != NULL ? PyTuple_GET_SIZE(names) : params != NULL ? PyDict_GET_SIZE(params) : 0;
    if (count > MAX_OPERANDS) return NULL;
    PyObject *key =
        read_operands(self, trace, primitive, operands, count, named, values, &filled, tracers, &moving);
    if (key == NULL) goto end;
    PyObject *name, *value;
    for (Py_ssize_t i = 3 + 2 * count; i < 3 + 2 * count + 2 * named; i += 2) {
        if (names != NULL) {
            name = PyTuple_GET_ITEM(names, at);
            value = operands[count + at++];
        } else
            PyDict_Next(params, &at, &name, &value);
        if ((value = exact(value)) == NULL) goto end;
        PyTuple_SET_ITEM(key, i, Py_NewRef(name));
        PyTuple_SET_ITEM(key, i + 1, value);
    }
    rule = Py_XNewRef(PyDict_GetItemWithError(rules, key));
    if (rule == NULL && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) PyErr_Clear(); /* a parameter that cannot be hashed */
        goto end;
    }
    if (rule == NULL || PyLong_CheckExact(rule)) {
        if (params == NULL) goto end;
        Py_XSETREF(rule, learn_rule(self, key, count, params));
        if (rule == NULL) goto end;
    }
    if (rule == Py_None) goto end;
    PyObject *results = run_row(PyTuple_GET_ITEM(rule, 0), values, filled);
    if (results == NULL) goto end;
    PyObject *array = array_of(PyTuple_GET_ITEM(rule, 1), Py_NewRef(PyList_GET_ITEM(results, 0)));
    if (array != NULL && PyTuple_GET_ITEM(rule, 2) != Py_None) {
        result = finish(self, trace, array, results, tracers, moving, rule);
        Py_DECREF(array);
    } else
        result = array;
    Py_DECREF(results);
end:
    for (Py_ssize_t i = 0; i < filled; i++) Py_DECREF(values[i]);
    Py_XDECREF(rule);
    Py_XDECREF(key);
    return result;
}

/* rules(trace, primitive, operands, params) -> the result, or None */
static PyObject *call_rules(HostRules *self, PyObject *args, PyObject *kwargs) {
    PyObject *trace, *primitive, *operands, *params;
    if (!PyArg_ParseTuple(args, "OOO!O!", &trace, &primitive, &PyTuple_Type, &operands, &PyDict_Type, &params))
        return NULL;
    PyObject *result = apply(self, trace, primitive, &PyTuple_GET_ITEM(operands, 0), PyTuple_GET_SIZE(operands), NULL,
                             params);
    return result == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : result;
}

/* Adds to the cotangents that are known what a straight-line NumPy program gave for the operands of a step. */
static int add_cotangents(PyObject *known, PyObject *invars, PyObject *avals, PyObject *results) {
    Py_ssize_t next = PyList_GET_SIZE(results);
    /* in the order in which its equations would run backwards: that of an addition's operands matters */
    for (Py_ssize_t i = PyList_GET_SIZE(avals) - 1; i >= 0; i--) {
        PyObject *aval = PyList_GET_ITEM(avals, i), *var = PyList_GET_ITEM(invars, i);
        if (aval == Py_None) continue;
        PyObject *part = array_of(aval, Py_NewRef(PyList_GET_ITEM(results, --next)));
        PyObject *sum = part == NULL ? NULL : PyDict_GetItemWithError(known, var);
        if (sum != NULL) Py_SETREF(part, PyObject_CallMethodObjArgs(addition, s_bind, sum, part, NULL));
        int failed = part == NULL || PyErr_Occurred() || PyDict_SetItem(known, var, part) < 0;
        Py_XDECREF(part);
        if (failed) return -1;
    }
    return 0;
}

/* Runs one step backwards. 1: done, 0: left to Python, -1: failed. */
static int run_step_backwards(PyObject *step, PyObject *trace_key, PyObject *known) {
    PyObject *values[MAX_RESIDUALS + 1], *rule = SLOT(step, slots.rule), *back = SLOT(rule, slots.back);
    PyObject *residuals = SLOT(step, slots.residuals), *out = PyList_GET_ITEM(SLOT(step, slots.outvars), 0);
    Py_ssize_t given = PyList_GET_SIZE(residuals);
    PyObject *cotangent = PyDict_GetItemWithError(known, out);
    if (cotangent == NULL) return PyErr_Occurred() ? -1 : 1;
    if (!PyTuple_Check(back) || PyTuple_GET_ITEM(back, 0) == Py_None || SLOT(rule, slots.key) != trace_key ||
        !Py_IS_TYPE(cotangent, array_type) || given > MAX_RESIDUALS)
        return 0;
    PyObject *value = peek(cotangent);
    if (value == NULL) return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(value);
    for (Py_ssize_t i = 0; i < given; i++) values[i] = PyList_GET_ITEM(residuals, i);
    values[given] = value;
    PyObject *results = PyDict_DelItem(known, out) < 0 ? NULL : run_row(PyTuple_GET_ITEM(back, 0), values, given + 1);
    Py_DECREF(value);
    if (results == NULL) return -1;
    int failed = add_cotangents(known, SLOT(step, slots.invars), PyTuple_GET_ITEM(back, 1), results);
    Py_DECREF(results);
    return failed ? -1 : 1;
}

/* run_on_host_backwards(equations, count, known) -> how many are left; see interpreters/transpose.py */
static PyObject *run_on_host_backwards(PyObject *module, PyObject *args) {
    PyObject *equations, *known;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "O!nO!", &PyList_Type, &equations, &count, &PyDict_Type, &known)) return NULL;
    PyObject *trace = thread_value(&known_current, current, s_trace);
    PyObject *trace_key = trace == NULL ? NULL : thread_value(&known_settings, settings, s_trace_key);
    int done = trace_key == NULL ? -1 : SLOT(trace, ends_eager_slot) == Py_True;
    while (done == 1 && count > 0 && count <= PyList_GET_SIZE(equations)) {
        PyObject *step = Py_NewRef(PyList_GET_ITEM(equations, count - 1));
        done = Py_IS_TYPE(step, step_type) ? run_step_backwards(step, trace_key, known) : 0;
        Py_DECREF(step);
        count -= done == 1;
    }
    Py_XDECREF(trace);
    Py_XDECREF(trace_key);
    return done < 0 ? NULL : PyLong_FromSsize_t(count);
}

/* HostRules(kind, tracer class, name of its value, name of its tangent or axis, make, finish) */
static PyObject *make_host_rules(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *kind, *tracer, *make, *python_finish;
    const char *value, *extra;
    if (!PyArg_ParseTuple(args, "UO!ssOO", &kind, &PyType_Type, &tracer, &value, &extra, &make, &python_finish))
        return NULL;
    HostRules *self = (HostRules *)type->tp_alloc(type, 0); /* lives forever */
    if (self == NULL) return NULL;
    self->kind = PyUnicode_CompareWithASCIIString(kind, "jvp") == 0     ? JVP
                 : PyUnicode_CompareWithASCIIString(kind, "batch") == 0 ? BATCH
                                                                        : LINEARIZE;
    self->name = Py_NewRef(kind);
    self->make = Py_NewRef(make);
    self->tracer = (PyTypeObject *)Py_NewRef(tracer);
    self->owner_slot = slot_of(tracer, "owner");
    self->aval_slot = slot_of(tracer, "aval");
    self->value_slot = slot_of(tracer, value);
    self->extra_slot = slot_of(tracer, extra);
    if (PyErr_Occurred()) Py_CLEAR(self);
    return (PyObject *)self;
}

static PyTypeObject host_rules_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax.core._bind.HostRules",
    .tp_basicsize = sizeof(HostRules),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "How a trace handles operations with rules that were recorded.",
    .tp_new = make_host_rules,
    .tp_call = (ternaryfunc)call_rules,
};

/* set_host_rules(config, quiet, aval_of, the dict of rules, learn) */
static PyObject *set_host_rules(PyObject *module, PyObject *args) {
    if (!PyArg_ParseTuple(args, "OOOO!O", &settings, &rows_quiet, &aval_of, &PyDict_Type, &rules, &learn)) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) Py_INCREF(PyTuple_GET_ITEM(args, i)); /* forever */
    Py_RETURN_NONE;
}

/* set_tape(LinearizeTrace, TapeTrace, LinearTracer, HostStep, LinearRule) */
static PyObject *set_tape(PyObject *module, PyObject *args) {
    PyObject *trace, *tape, *tangent, *step, *rule;
    if (!PyArg_ParseTuple(args, "OOOOO", &trace, &tape, &tangent, &step, &rule)) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) Py_INCREF(PyTuple_GET_ITEM(args, i)); /* forever */
    tangent_type = (PyTypeObject *)tangent;
    step_type = (PyTypeObject *)step;
    struct { Py_ssize_t *where; PyObject *type; const char *name; } all[] = {
        {&slots.tape, trace, "tape"}, {&slots.equations, tape, "equations"}, {&slots.owner, tangent, "owner"},
        {&slots.variable, tangent, "variable"}, {&slots.aval, tangent, "aval"}, {&slots.rule, step, "rule"},
        {&slots.residuals, step, "residuals"}, {&slots.invars, step, "invars"}, {&slots.outvars, step, "outvars"},
        {&slots.back, rule, "back"}, {&slots.key, rule, "trace_key"}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if ((*all[i].where = slot_of(all[i].type, all[i].name)) < 0) return NULL;
    Py_RETURN_NONE;
}

/* set_addition(primitive): how cotangents are added */
static PyObject *set_addition(PyObject *module, PyObject *primitive) {
    addition = Py_NewRef(primitive);
    Py_RETURN_NONE;
}

static int ready_host_rules(void) {
    struct { PyObject **where; const char *text; } names[] = {
        {&s_trace_key, "trace_key"}, {&s_peek, "peek"}, {&s_ndim, "ndim"}, {&s_bind, "bind"}, {&s_number, "number"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if ((*names[i].where = PyUnicode_InternFromString(names[i].text)) == NULL) return -1;
    return PyType_Ready(&host_rules_type);
}

#endif
