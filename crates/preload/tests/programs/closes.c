/* A program that closes all files that it does not know, and opens others in their place,
   while its threads are served. */

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void *deep(void *unused) {
    volatile char space[100 << 10];
    (void)unused;
    for (size_t i = 0; i < sizeof space; i += 1024) {
        space[i] = 1;
    }
    return NULL;
}

static void *light(void *unused) {
    return unused;
}

static void run(void *(*start)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, start, NULL) || pthread_join(thread, NULL)) {
        abort();
    }
}

/* Of those that are open, the numbers from 3 on. */
static int others(int *numbers, int max) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        int number = atoi(entry->d_name);
        if (number > 2 && number != dirfd(folder) && count < max) {
            numbers[count++] = number;
        }
    }
    closedir(folder);
    return count;
}

int main(void) {
    int numbers[64];
    run(light);
    int count = others(numbers, 64);
    int zero = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < count; i++) {
        if (dup2(zero, numbers[i]) != numbers[i]) {
            return 1;
        }
    }
    run(deep);
    run(light);
    /* They are still the program's. */
    struct stat expected, found;
    fstat(zero, &expected);
    for (int i = 0; i < count; i++) {
        if (fstat(numbers[i], &found) || found.st_rdev != expected.st_rdev) {
            return 2;
        }
    }
    printf("%d\n", count);
    return 0;
}
