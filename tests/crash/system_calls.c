/* Counts the system calls that change files below a folder, and fails or stops at the n-th.

   Preloaded into Python (LD_PRELOAD). A call counts if it opens a file for writing, writes, truncates,
   synchronises, renames, links, removes or creates below the folder, or locks there. At the n-th call
   the process is killed or stopped, or the call fails with an error; a write first writes its first
   half, as a disk that fills up does. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, KILL, STOP, FAIL, FAIL_FROM_THEN_ON };
enum { ROOM = 1 << 16 };

static char folder[PATH_MAX];
static int is_armed, met, last, action, code;
static char calls[ROOM];
static size_t used;

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

void arm(const char *below, int n, int what, int error) {
    snprintf(folder, sizeof folder, "%s/", below);
    met = 0, last = n, action = what, code = error, used = 0;
    calls[0] = 0;
    is_armed = 1;
}

/* A process that starts with these variables, and each that it starts, is killed at its n-th call. */
__attribute__((constructor)) static void arm_by_environment(void) {
    const char *below = getenv("CRASH_BELOW"), *n = getenv("CRASH_AT");
    if (below && n) arm(below, atoi(n), KILL, 0);
}

/* The names of the calls since `arm`, one on each line. */
const char *disarm(void) {
    is_armed = 0;
    return calls;
}

static int is_below(int handle, const char *path) {
    char link[64], whole[PATH_MAX];
    ssize_t size = 0;
    if (path && path[0] == '/') return strncmp(path, folder, strlen(folder)) == 0;
    if (handle == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    size = readlink(link, whole, sizeof whole - 2);
    if (size <= 0) return 0;
    whole[size] = '/', whole[size + 1] = 0;
    return strncmp(whole, folder, strlen(folder)) == 0;
}

/* Whether the call, of a path below the folder, fails now. */
static int fails(const char *name, int handle, const char *path) {
    int is_removal = !strncmp(name, "unlink", 6) || !strcmp(name, "rmdir");
    if (!is_armed || !is_below(handle, path)) return 0;
    met += 1;
    if (used + strlen(name) + 2 < ROOM) used += (size_t)sprintf(calls + used, "%s\n", name);
    if (action == FAIL_FROM_THEN_ON ? met < last || is_removal : met != last) return 0;
    return action != COUNT;
}

static int refuse(void) {
    if (action == KILL) kill(getpid(), SIGKILL);
    if (action == STOP) {
        is_armed = 0;
        raise(SIGSTOP);
        return 0;
    }
    errno = code;
    return -1;
}

#define GUARD(name, handle, path) \
    if (fails(#name, handle, path) && refuse()) return -1

#define OPENS(name, arguments, values, handle) \
    int name arguments { \
        mode_t mode = 0; \
        NEXT(name); \
        if (flags & (O_CREAT | __O_TMPFILE)) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        if (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) GUARD(name, handle, path); \
        return next values; \
    }

OPENS(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENS(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENS(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)
OPENS(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)

#define SIMPLE(result, name, arguments, values, handle, path) \
    result name arguments { \
        NEXT(name); \
        GUARD(name, handle, path); \
        return next values; \
    }

SIMPLE(int, creat, (const char *a, mode_t m), (a, m), AT_FDCWD, a)
SIMPLE(int, creat64, (const char *a, mode_t m), (a, m), AT_FDCWD, a)
SIMPLE(int, mkdir, (const char *a, mode_t m), (a, m), AT_FDCWD, a)
SIMPLE(int, mkdirat, (int at, const char *a, mode_t m), (at, a, m), at, a)
SIMPLE(int, rmdir, (const char *a), (a), AT_FDCWD, a)
SIMPLE(int, unlink, (const char *a), (a), AT_FDCWD, a)
SIMPLE(int, unlinkat, (int at, const char *a, int f), (at, a, f), at, a)
SIMPLE(int, rename, (const char *a, const char *b), (a, b), AT_FDCWD, b)
SIMPLE(int, renameat, (int x, const char *a, int y, const char *b), (x, a, y, b), y, b)
SIMPLE(int, renameat2, (int x, const char *a, int y, const char *b, unsigned f), (x, a, y, b, f), y, b)
SIMPLE(int, link, (const char *a, const char *b), (a, b), AT_FDCWD, b)
SIMPLE(int, linkat, (int x, const char *a, int y, const char *b, int f), (x, a, y, b, f), y, b)
SIMPLE(int, symlink, (const char *a, const char *b), (a, b), AT_FDCWD, b)
SIMPLE(int, symlinkat, (const char *a, int at, const char *b), (a, at, b), at, b)
SIMPLE(int, truncate, (const char *a, off_t n), (a, n), AT_FDCWD, a)
SIMPLE(int, truncate64, (const char *a, off64_t n), (a, n), AT_FDCWD, a)
SIMPLE(int, ftruncate, (int h, off_t n), (h, n), h, NULL)
SIMPLE(int, ftruncate64, (int h, off64_t n), (h, n), h, NULL)
SIMPLE(int, chmod, (const char *a, mode_t m), (a, m), AT_FDCWD, a)
SIMPLE(int, fchmod, (int h, mode_t m), (h, m), h, NULL)
SIMPLE(int, fsync, (int h), (h), h, NULL)
SIMPLE(int, fdatasync, (int h), (h), h, NULL)
SIMPLE(int, flock, (int h, int how), (h, how), h, NULL)
SIMPLE(int, utimensat, (int at, const char *a, const struct timespec t[2], int f), (at, a, t, f), at, a)
SIMPLE(int, futimens, (int h, const struct timespec t[2]), (h, t), h, NULL)
SIMPLE(ssize_t, writev, (int h, const struct iovec *v, int n), (h, v, n), h, NULL)
SIMPLE(ssize_t, sendfile, (int h, int from, off_t *o, size_t n), (h, from, o, n), h, NULL)
SIMPLE(ssize_t, sendfile64, (int h, int from, off64_t *o, size_t n), (h, from, o, n), h, NULL)
SIMPLE(ssize_t, copy_file_range,
       (int from, off64_t *o, int h, off64_t *p, size_t n, unsigned f), (from, o, h, p, n, f), h, NULL)

#define WRITES(name, arguments, half, values, handle) \
    ssize_t name arguments { \
        NEXT(name); \
        if (fails(#name, handle, NULL)) { \
            if (action != STOP && size > 1 && next half < 0) return -1; \
            if (refuse()) return -1; \
        } \
        return next values; \
    }

WRITES(write, (int h, const void *b, size_t size), (h, b, size / 2), (h, b, size), h)
WRITES(pwrite, (int h, const void *b, size_t size, off_t o), (h, b, size / 2, o), (h, b, size, o), h)
WRITES(pwrite64, (int h, const void *b, size_t size, off64_t o), (h, b, size / 2, o), (h, b, size, o), h)
