/* A pool for the memory of large arrays on the host, which XLA's library and our own arrays take blocks from.

   glibc gives large blocks back to the system when they are freed, and gets fresh pages for the next, which takes
   several times as long as filling them. The pool keeps the pages of freed blocks, up to a limit. It serves XLA alone:
   `posix_memalign`, `realloc` and `free` are replaced where the libraries of jaxlib call them, and nobody else's memory
   is touched.

   The pool is one range of addresses, cut into units. A unit belongs to a block, or to an extent of one of two lists:
   `kept` (its pages are there) or `fresh` (they are not). Extents of a list are sorted and never touch each other.

   What it keeps true: pages of blocks and of kept extents together are never more than blocks alone once were, so that
   keeping raises no peak; and kept pages are at most `limit`. */

#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_imports.h"

#if defined(__GLIBC__) && defined(__LP64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAS_POOL 1
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define UNIT ((size_t)1 << 14)
#define LEAST ((size_t)1 << 17) /* bytes; glibc serves smaller blocks without new pages */

typedef struct {
    size_t start, length; /* in units */
} Extent;

typedef struct {
    Extent *extents;
    size_t count, room, units;
} List;

static char *base;           /* of the range; NULL without a pool */
static size_t range;         /* its length in bytes */
static uint32_t *lengths;    /* by unit: the length of the block that begins there */
static List kept, fresh;
static size_t limit, in_use, most_in_use; /* units */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int insert(List *list, size_t at, Extent extent) {
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 64 : 2 * list->room;
        Extent *grown = realloc(list->extents, room * sizeof(Extent));
        if (grown == NULL) return 0;
        list->extents = grown;
        list->room = room;
    }
    memmove(list->extents + at + 1, list->extents + at, (list->count - at) * sizeof(Extent));
    list->extents[at] = extent;
    list->count++;
    return 1;
}

static void drop(List *list, size_t at) {
    list->count--;
    memmove(list->extents + at, list->extents + at + 1, (list->count - at) * sizeof(Extent));
}

/* Adds an extent, joined with its neighbours. Without memory for the list it is lost, which costs addresses only. */
static void put(List *list, Extent extent) {
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->extents[middle].start < extent.start)
            low = middle + 1;
        else
            high = middle;
    }
    Extent *before = low > 0 ? &list->extents[low - 1] : NULL;
    Extent *after = low < list->count ? &list->extents[low] : NULL;
    int joins_before = before != NULL && before->start + before->length == extent.start;
    int joins_after = after != NULL && extent.start + extent.length == after->start;
    if (joins_before && joins_after) {
        before->length += extent.length + after->length;
        drop(list, low);
    } else if (joins_before) {
        before->length += extent.length;
    } else if (joins_after) {
        after->start = extent.start;
        after->length += extent.length;
    } else if (!insert(list, low, extent)) {
        return;
    }
    list->units += extent.length;
}

/* Takes units from the smallest extent that holds them; whether there is one. */
static int take(List *list, size_t units, size_t *start) {
    size_t best = list->count;
    for (size_t i = 0; i < list->count; i++)
        if (list->extents[i].length >= units &&
            (best == list->count || list->extents[i].length < list->extents[best].length))
            best = i;
    if (best == list->count) return 0;
    *start = list->extents[best].start;
    list->extents[best].start += units;
    list->extents[best].length -= units;
    if (list->extents[best].length == 0) drop(list, best);
    list->units -= units;
    return 1;
}

/* Gives pages back to the system until at most so many units are kept. */
static void release_down_to(size_t units) {
    while (kept.units > units) {
        Extent *last = &kept.extents[kept.count - 1];
        size_t excess = kept.units - units, length = last->length < excess ? last->length : excess;
        Extent released = {last->start + last->length - length, length};
        last->length -= length;
        if (last->length == 0) kept.count--;
        kept.units -= length;
        madvise(base + released.start * UNIT, length * UNIT, MADV_DONTNEED);
        put(&fresh, released);
    }
}

static void *allocate(size_t bytes) {
    size_t units = (bytes + UNIT - 1) / UNIT, start;
    if (base == NULL || units > range / UNIT) return NULL;
    void *block = NULL;
    pthread_mutex_lock(&lock);
    if (!take(&kept, units, &start)) {
        size_t room = most_in_use > in_use + units ? most_in_use - in_use - units : 0;
        release_down_to(room);
        if (!take(&fresh, units, &start)) goto done;
    }
    in_use += units;
    if (in_use > most_in_use) most_in_use = in_use;
    lengths[start] = (uint32_t)units;
    block = base + start * UNIT;
done:
    pthread_mutex_unlock(&lock);
    return block;
}

static int is_ours(const void *block) { return base != NULL && (size_t)((const char *)block - base) < range; }

static void give_back(void *block) {
    pthread_mutex_lock(&lock);
    size_t start = (size_t)((char *)block - base) / UNIT;
    Extent freed = {start, lengths[start]};
    lengths[start] = 0;
    in_use -= freed.length;
    put(&kept, freed);
    release_down_to(limit);
    pthread_mutex_unlock(&lock);
}

/* What the libraries of jaxlib call instead of the functions of libc. */
static int pooled_memalign(void **result, size_t alignment, size_t bytes) {
    void *block = bytes >= LEAST && alignment <= UNIT ? allocate(bytes) : NULL;
    if (block == NULL) return posix_memalign(result, alignment, bytes);
    *result = block;
    return 0;
}

static void pooled_free(void *block) {
    if (is_ours(block)) {
        int error = errno;
        give_back(block);
        errno = error;
    } else {
        free(block);
    }
}

static void *pooled_realloc(void *block, size_t bytes) {
    if (!is_ours(block)) return realloc(block, bytes);
    if (bytes == 0) {
        give_back(block);
        return NULL;
    }
    size_t length = lengths[(size_t)((char *)block - base) / UNIT] * UNIT;
    void *moved = malloc(bytes);
    if (moved == NULL) return NULL;
    memcpy(moved, block, bytes < length ? bytes : length);
    give_back(block);
    return moved;
}

/* A block must be known wherever it is freed, so that all of these are replaced before the other. */
static const Replacement freeing[] = {{"free", (void *)pooled_free}, {"realloc", (void *)pooled_realloc}, {NULL, NULL}};
static const Replacement allocating[] = {{"posix_memalign", (void *)pooled_memalign}, {NULL, NULL}};

typedef struct {
    const char *folder; /* without links */
    const Replacement *replacements;
    int replaced;
} Request;

/* For `dl_iterate_phdr`. */
static int replace_in_folder(struct dl_phdr_info *library, size_t size, void *argument) {
    Request *request = argument;
    char *path = library->dlpi_name != NULL ? realpath(library->dlpi_name, NULL) : NULL;
    size_t length = strlen(request->folder);
    if (path != NULL && strncmp(path, request->folder, length) == 0 && path[length] == '/')
        request->replaced += replace_imports(library, request->replacements);
    free(path);
    return 0;
}

static int serve_folder(const char *name) {
    char *folder = realpath(name, NULL);
    if (folder == NULL) return 0;
    Request first = {folder, freeing, 0}, second = {folder, allocating, 0};
    dl_iterate_phdr(replace_in_folder, &first);
    if (first.replaced > 0) dl_iterate_phdr(replace_in_folder, &second);
    free(folder);
    return second.replaced > 0;
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static int make_pool(void) {
    if (base != NULL) return 1;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), memory = (size_t)sysconf(_SC_PHYS_PAGES) * page;
    if (memory == 0 || UNIT % page != 0) return 0;
    /* Addresses cost nothing; twice the memory leaves room for gaps between blocks. */
    size_t bytes = (2 * memory + UNIT - 1) / UNIT * UNIT;
    const int protection = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *addresses = mmap(NULL, bytes + UNIT, protection, kind, -1, 0);
    if (addresses == MAP_FAILED) return 0; /* the user has limited addresses */
    void *table = mmap(NULL, bytes / UNIT * sizeof(uint32_t), protection, kind, -1, 0);
    if (table == MAP_FAILED || pthread_atfork(before_fork, after_fork, after_fork) != 0) {
        munmap(addresses, bytes + UNIT);
        if (table != MAP_FAILED) munmap(table, bytes / UNIT * sizeof(uint32_t));
        return 0;
    }
    lengths = table;
    range = bytes;
    put(&fresh, (Extent){0, bytes / UNIT});
    base = (char *)(((uintptr_t)addresses + UNIT - 1) / UNIT * UNIT);
    return 1;
}

static void set_limit(size_t bytes) {
    pthread_mutex_lock(&lock);
    limit = bytes / UNIT;
    if (base != NULL) release_down_to(limit);
    pthread_mutex_unlock(&lock);
}

static void pool_sizes(size_t *blocks, size_t *freed) {
    pthread_mutex_lock(&lock);
    *blocks = in_use * UNIT;
    *freed = kept.units * UNIT;
    pthread_mutex_unlock(&lock);
}
#else
#define HAS_POOL 0
static void *allocate(size_t bytes) { return NULL; }
static void give_back(void *block) {}
static void set_limit(size_t bytes) {}
static void pool_sizes(size_t *blocks, size_t *freed) { *blocks = *freed = 0; }
#endif

/* A block as an object, for arrays of NumPy. */
typedef struct {
    PyObject_HEAD
    void *memory;
    Py_ssize_t bytes;
} Block;

static void free_block(Block *self) {
    if (self->memory != NULL) give_back(self->memory);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static int get_buffer(Block *self, Py_buffer *view, int flags) {
    return PyBuffer_FillInfo(view, (PyObject *)self, self->memory, self->bytes, 0, flags);
}

static PyBufferProcs as_buffer = {(getbufferproc)get_buffer, NULL};

static PyTypeObject BlockType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "purax.xla._host_memory.Block",
    .tp_basicsize = sizeof(Block),
    .tp_dealloc = (destructor)free_block,
    .tp_as_buffer = &as_buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A block of the pool; it has the buffer protocol.",
};

static PyObject *block(PyObject *module, PyObject *size) {
    size_t bytes = PyLong_AsSize_t(size);
    if (bytes == (size_t)-1 && PyErr_Occurred()) return NULL;
    Block *self = PyObject_New(Block, &BlockType);
    if (self == NULL) return NULL;
    self->bytes = (Py_ssize_t)bytes;
    self->memory = bytes > 0 && bytes <= PY_SSIZE_T_MAX ? allocate(bytes) : NULL;
    if (self->memory == NULL) {
        Py_DECREF(self);
        Py_RETURN_NONE;
    }
    return (PyObject *)self;
}

static PyObject *serve(PyObject *module, PyObject *args) {
    const char *folder;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "sn", &folder, &bytes)) return NULL;
#if HAS_POOL
    set_limit((size_t)bytes);
    return PyBool_FromLong(make_pool() && serve_folder(folder));
#else
    Py_RETURN_FALSE;
#endif
}

static PyObject *keep(PyObject *module, PyObject *size) {
    size_t bytes = PyLong_AsSize_t(size);
    if (bytes == (size_t)-1 && PyErr_Occurred()) return NULL;
    set_limit(bytes);
    Py_RETURN_NONE;
}

static PyObject *sizes(PyObject *module, PyObject *unused) {
    size_t blocks, freed;
    pool_sizes(&blocks, &freed);
    return Py_BuildValue("nn", (Py_ssize_t)blocks, (Py_ssize_t)freed);
}

static PyMethodDef methods[] = {
    {"serve", serve, METH_VARARGS, "Makes the pool, and has the libraries of a folder use it; whether they do."},
    {"keep", keep, METH_O, "Sets the number of bytes that are kept when they are freed."},
    {"block", block, METH_O, "A block of so many bytes; None if there is no pool, or no room in it."},
    {"sizes", sizes, METH_NOARGS, "The bytes of all blocks, and those that are kept."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_host_memory", NULL, -1, methods};

PyMODINIT_FUNC PyInit__host_memory(void) {
    if (PyType_Ready(&BlockType) < 0) return NULL;
    return PyModule_Create(&definition);
}
