/* Misuse of what callbacks of streams are handed. Included behind a table of functions, whose
 * `struct arguments` has `calls`: whether callbacks are handed over. */
#ifndef EVERY_LENT_H
#define EVERY_LENT_H

/* All that is wrong without a look at the handle. */
static void misuse(const struct row *row, const struct arguments *good) {
    misuse_texts(row, good);
    if (!(row->kinds & CALLBACK)) return;
    struct arguments a = *good;
    a.calls = false;
    expect(row, &a, MILIEU_NULL, "no callback");
}

/* Handles that are lent are misused while they are good. */
static struct arguments good, freed;

static void misuse_lent(size_t handle, const void *lent) {
    struct arguments a = good;
    memcpy((char *)&a + handle, &lent, sizeof lent);
    for (size_t i = 0; i < count; i++)
        if (rows[i].handle == handle) misuse(&rows[i], &a);
}

#endif
