/* What becomes of threads that are inside XLA when the interpreter ends.

   A thread that asks for the interpreter's lock after its end is ended by Python with `pthread_exit`, which on glibc
   unwinds its stack. XLA's C++ frames do not allow that: the process aborts, or their destructors touch Python's
   objects without its lock. From 3.14 on, Python lets such threads sleep until the process is gone, a moment
   later. `park_threads` makes earlier versions do the same: it replaces `pthread_exit` where Python calls it, and only
   there, in its table of functions from other libraries.

   The end of a process destroys XLA's static objects, which a compile that goes on would still use. While
   somebody says that one does, the process ends without that: by then, Python is done.

   In a group of processes, a thread of XLA's that talks to a member which was lost in the middle of a collective may throw,
   and nobody catches it: the process aborts before it has heard of the loss. `park_aborts` makes such a thread wait
   for the news, and if there is any, sleep until the process has ended with the error that names who was lost, or for
   good where the process goes on in a new group. */

#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static int calls_under_way; /* of XLA */

#include "_imports.h"

#if defined(__GLIBC__) && defined(__LP64__)
#include <pthread.h>
#include <stdio.h>

static void leave(int status, void *unused) {
    if (__atomic_load_n(&calls_under_way, __ATOMIC_SEQ_CST) > 0) {
        fflush(NULL);
        _exit(status);
    }
}

#if PY_VERSION_HEX < 0x030E0000
static void sleep_for_ever(void *unused) {
    for (;;) pause();
}

static int contains(const struct dl_phdr_info *library, ElfW(Addr) address) {
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        ElfW(Addr) start = library->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && start <= address && address < start + part->p_memsz) return 1;
    }
    return 0;
}

static const Replacement exits[] = {{"pthread_exit", (void *)sleep_for_ever}, {NULL, NULL}};

/* For `dl_iterate_phdr`: the library with Python's threads in it gets another `pthread_exit`. */
static int replace_exit(struct dl_phdr_info *library, size_t size, void *replaced) {
    if (!contains(library, (ElfW(Addr))PyThread_exit_thread)) return 0;
    *(int *)replaced = replace_imports(library, exits) > 0;
    return 1;
}
#endif

static int prepare_end(void) {
    int replaced = 0;
#if PY_VERSION_HEX < 0x030E0000
    dl_iterate_phdr(replace_exit, &replaced);
#else
    replaced = 1;
#endif
    on_exit(leave, NULL); /* now, so that it comes before everything that XLA has registered */
    return replaced;
}
#else
static int prepare_end(void) { return 0; } /* elsewhere `pthread_exit` unwinds nothing */
#endif

static PyObject *park_threads(PyObject *module, PyObject *unused) { return PyBool_FromLong(prepare_end()); }

static PyObject *count_call(PyObject *module, PyObject *change) {
    long by = PyLong_AsLong(change);
    if (by == -1 && PyErr_Occurred()) return NULL;
    __atomic_add_fetch(&calls_under_way, (int)by, __ATOMIC_SEQ_CST);
    Py_RETURN_NONE;
}

#ifndef _WIN32
#include <signal.h>
#include <time.h>

#define NEWS_WITHIN 5.0  /* seconds, in which a loss is noticed */
#define ENDED_WITHIN 60.0 /* seconds, in which a process ends that knows of one */

static int loss_is_known;
static int groups_survived; /* after a loss */
static struct sigaction usual_abort;

static void sleep_until(const int *condition, double seconds) {
    const struct timespec moment = {0, 20000000};
    for (double waited = 0; waited < seconds; waited += 0.02) {
        if (condition != NULL && __atomic_load_n(condition, __ATOMIC_SEQ_CST)) return;
        nanosleep(&moment, NULL);
    }
}

/* Runs in the thread that aborts; everything it calls may be called in a handler of signals. */
static void on_abort(int signal_number) {
    int before = __atomic_load_n(&groups_survived, __ATOMIC_SEQ_CST);
    sleep_until(&loss_is_known, NEWS_WITHIN);
    if (__atomic_load_n(&loss_is_known, __ATOMIC_SEQ_CST)) sleep_until(NULL, ENDED_WITHIN);
    while (__atomic_load_n(&groups_survived, __ATOMIC_SEQ_CST) != before) sleep_until(NULL, ENDED_WITHIN);
    sigaction(SIGABRT, &usual_abort, NULL);
    raise(SIGABRT); /* when this handler has returned */
}

static void catch_aborts(void) {
    struct sigaction action = {0}, present;
    action.sa_handler = on_abort;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGABRT, NULL, &present) == 0 && present.sa_handler != on_abort) {
        usual_abort = present;
        sigaction(SIGABRT, &action, NULL);
    }
}
#else
static int loss_is_known;
static int groups_survived;
static void catch_aborts(void) {} /* there are no groups */
#endif

static PyObject *park_aborts(PyObject *module, PyObject *unused) {
    catch_aborts();
    Py_RETURN_NONE;
}

static PyObject *note_loss(PyObject *module, PyObject *unused) {
    __atomic_store_n(&loss_is_known, 1, __ATOMIC_SEQ_CST);
    Py_RETURN_NONE;
}

static PyObject *survive_loss(PyObject *module, PyObject *unused) {
    __atomic_add_fetch(&groups_survived, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&loss_is_known, 0, __ATOMIC_SEQ_CST);
    Py_RETURN_NONE;
}

static PyObject *s_is_deleted, *s_is_ready;

/* Both questions at once, so that no thread comes in between: XLA dies when it is asked of a deleted buffer whether
   it is ready. */
static PyObject *is_pending(PyObject *module, PyObject *buffer) {
    PyObject *deleted = PyObject_CallMethodNoArgs(buffer, s_is_deleted);
    if (deleted == NULL) return NULL;
    Py_DECREF(deleted);
    if (deleted == Py_True) Py_RETURN_FALSE;
    PyObject *ready = PyObject_CallMethodNoArgs(buffer, s_is_ready);
    if (ready == NULL) return NULL;
    Py_DECREF(ready);
    return PyBool_FromLong(ready != Py_True);
}

static PyMethodDef methods[] = {
    {"is_pending", is_pending, METH_O, "Whether a buffer is there, or will be, and is not ready."},
    {"park_threads", park_threads, METH_NOARGS, "To be called when the interpreter ends; says whether threads will sleep."},
    {"count_call", count_call, METH_O, "Adds 1 or -1 to the number of calls of the engine that are under way."},
    {"park_aborts", park_aborts, METH_NOARGS, "Makes threads that abort wait for news of a loss."},
    {"survive_loss", survive_loss, METH_NOARGS, "To be called when this process goes on in another group after a loss."},
    {"note_loss", note_loss, METH_NOARGS, "To be called when a member of the group is lost: the process is about to end."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_parking", NULL, -1, methods};

PyMODINIT_FUNC PyInit__parking(void) {
    if ((s_is_deleted = PyUnicode_InternFromString("is_deleted")) == NULL) return NULL;
    if ((s_is_ready = PyUnicode_InternFromString("is_ready")) == NULL) return NULL;
    return PyModule_Create(&definition);
}
