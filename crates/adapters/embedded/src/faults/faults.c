/* Stands between a process and the C library, for the files below FAULTS_FOLDER alone. Its n-th operation fails or is the
 * process's last one:
 *
 *   FAULTS_KIND   kill   the process ends before the operation
 *                 tear   it ends after half of a write
 *                 error  the operation fails with EIO
 *                 full   from there on, writes fail with ENOSPC
 *   FAULTS_AT     n; 0 is never
 *   FAULTS_SHADOW a folder that gets the content of each file, by its inode, when the file is synced: what a power cut leaves
 *   FAULTS_LIES   when set, syncs do nothing and say that they did
 *   FAULTS_COUNT  a file that gets the number of operations when the process ends by itself
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { KILL, TEAR, ERROR, FULL };
enum fate { GOES_ON, FAILS, TEARS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *folder, *shadow;
static enum kind kind;
static long at, operations;
static int lies;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static int (*real_fsync)(int), (*real_fdatasync)(int), (*real_ftruncate)(int, off_t);
static int (*real_rename)(const char *, const char *), (*real_unlink)(const char *);
static int (*real_unlinkat)(int, const char *, int);

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAULTS_KIND"), *number = getenv("FAULTS_AT");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_rename = dlsym(RTLD_NEXT, "rename");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    real_unlinkat = dlsym(RTLD_NEXT, "unlinkat");
    folder = getenv("FAULTS_FOLDER");
    shadow = getenv("FAULTS_SHADOW");
    lies = getenv("FAULTS_LIES") != NULL;
    at = number ? atol(number) : 0;
    if (name)
        kind = !strcmp(name, "tear") ? TEAR : !strcmp(name, "error") ? ERROR : !strcmp(name, "full") ? FULL : KILL;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAULTS_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%ld", operations);
        fclose(file);
    }
}

static int is_below(const char *path) {
    return folder && !strncmp(path, folder, strlen(folder));
}

static int is_ours(int fd) {
    char link[64], path[4096];
    if (!folder)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len < 0)
        return 0;
    path[len] = 0;
    return is_below(path);
}

/* What becomes of the next operation. */
static enum fate next(int is_write) {
    pthread_mutex_lock(&lock);
    long number = ++operations;
    enum fate fate = GOES_ON;
    if (at && number >= at) {
        if (kind == FULL)
            fate = is_write ? FAILS : GOES_ON;
        else if (kind == ERROR)
            fate = number == at ? FAILS : GOES_ON;
        else if (kind == TEAR && is_write)
            return TEARS; /* The lock stays: nobody else writes. */
        else
            _exit(77);
    }
    pthread_mutex_unlock(&lock);
    if (fate == FAILS)
        errno = kind == FULL ? ENOSPC : EIO;
    return fate;
}

/* Copies what a file holds, without its holes. One that has no name any more is not kept: its number may be that of
   another one next. */
static void keep(int fd) {
    char source[64], target[4096], bytes[1 << 16];
    struct stat info;
    if (!shadow)
        return;
    pthread_mutex_lock(&lock);
    if (fstat(fd, &info) || !S_ISREG(info.st_mode) || info.st_nlink == 0) {
        pthread_mutex_unlock(&lock);
        return;
    }
    snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    snprintf(target, sizeof target, "%s/%lu", shadow, (unsigned long)info.st_ino);
    int from = open(source, O_RDONLY), to = open(target, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (from < 0 || to < 0 || real_ftruncate(to, info.st_size))
        abort();
    off_t begin = 0;
    while ((begin = lseek(from, begin, SEEK_DATA)) >= 0) {
        off_t end = lseek(from, begin, SEEK_HOLE);
        while (begin < end) {
            size_t wanted = end - begin < (off_t)sizeof bytes ? (size_t)(end - begin) : sizeof bytes;
            ssize_t len = pread(from, bytes, wanted, begin);
            if (len <= 0 || real_pwrite(to, bytes, len, begin) != len)
                abort();
            begin += len;
        }
    }
    close(from);
    close(to);
    pthread_mutex_unlock(&lock);
}

ssize_t write(int fd, const void *bytes, size_t len) {
    if (!is_ours(fd))
        return real_write(fd, bytes, len);
    switch (next(1)) {
    case GOES_ON: return real_write(fd, bytes, len);
    case FAILS: return -1;
    default: real_write(fd, bytes, len / 2); _exit(77);
    }
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset) {
    if (!is_ours(fd))
        return real_pwrite(fd, bytes, len, offset);
    switch (next(1)) {
    case GOES_ON: return real_pwrite(fd, bytes, len, offset);
    case FAILS: return -1;
    default: real_pwrite(fd, bytes, len / 2, offset); _exit(77);
    }
}

ssize_t writev(int fd, const struct iovec *parts, int len) {
    if (!is_ours(fd))
        return real_writev(fd, parts, len);
    switch (next(1)) {
    case GOES_ON: return real_writev(fd, parts, len);
    case FAILS: return -1;
    default: real_writev(fd, parts, len / 2); _exit(77);
    }
}

static int sync_by(int (*real)(int), int fd) {
    if (!is_ours(fd))
        return real(fd);
    if (next(0) == FAILS)
        return -1;
    if (lies)
        return 0;
    int result = real(fd);
    if (result == 0)
        keep(fd);
    return result;
}

int fsync(int fd) { return sync_by(real_fsync, fd); }

int fdatasync(int fd) { return sync_by(real_fdatasync, fd); }

/* Whether an operation that happens as a whole or not at all fails. Torn, it does not happen. */
static int whole_fails(void) {
    enum fate fate = next(1);
    if (fate == TEARS)
        _exit(77);
    return fate == FAILS;
}

int ftruncate64(int fd, off_t len) {
    return is_ours(fd) && whole_fails() ? -1 : real_ftruncate(fd, len);
}

int rename(const char *from, const char *to) {
    return is_below(to) && whole_fails() ? -1 : real_rename(from, to);
}

/* The next file may get the number of one that goes: it must not revert to what that one was. */
static void forget(int at, const char *path) {
    struct stat info;
    char target[4096];
    if (!shadow || fstatat(at, path, &info, AT_SYMLINK_NOFOLLOW) || !S_ISREG(info.st_mode) || info.st_nlink > 1)
        return;
    snprintf(target, sizeof target, "%s/%lu", shadow, (unsigned long)info.st_ino);
    real_unlink(target);
}

int unlinkat(int at, const char *path, int flags) {
    pthread_mutex_lock(&lock);
    forget(at, path);
    int result = real_unlinkat(at, path, flags);
    pthread_mutex_unlock(&lock);
    return result;
}

int unlink(const char *path) {
    if (!is_below(path))
        return real_unlink(path);
    if (next(0) == FAILS)
        return -1;
    pthread_mutex_lock(&lock);
    forget(AT_FDCWD, path);
    int result = real_unlink(path);
    pthread_mutex_unlock(&lock);
    return result;
}
