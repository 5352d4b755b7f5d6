/* Three threads, one after another, of so many levels; tells how much address space the
   stack of the last takes. So many MB of it are used besides, and stacks are set to so
   many KB. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "depth.h"

static size_t bytes;

/* Where the memory begins that has this address. */
static uintptr_t start_of(uintptr_t address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t found = 0, start, end;
    char line[512];
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2 && start <= address
            && address < end)
            found = start;
    if (maps)
        fclose(maps);
    return found;
}

static void *is_deep(void *argument)
{
    pthread_attr_t attr;
    void *low;
    int levels = depth_of(*(int *)argument);
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        exit(1);
    pthread_attr_getstack(&attr, &low, &bytes);
    pthread_attr_destroy(&attr);
    bytes += (uintptr_t)low - start_of((uintptr_t)&attr);
    return levels == *(int *)argument ? argument : NULL;
}

int main(int count, char **arguments)
{
    int levels = count > 1 ? atoi(arguments[1]) : 1;
    size_t used = count > 2 ? (size_t)atoi(arguments[2]) << 20 : 0;
    size_t set = count > 3 ? (size_t)atoi(arguments[3]) << 10 : 0;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0 || (set > 0 && pthread_attr_setstacksize(&attr, set) != 0))
        return 2;
    if (used > 0 && mmap(NULL, used, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return 2;
    if (count > 4 && pthread_setattr_default_np(&attr) != 0)
        return 2;
    for (int i = 0; i < 3; ++i) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, set > 0 && count < 5 ? &attr : NULL, is_deep, &levels) != 0)
            return 1;
        if (pthread_join(thread, &result) != 0 || !result)
            return 1;
    }
    printf("%zu\n", bytes);
    return 0;
}
