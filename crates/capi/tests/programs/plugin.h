/* What a host and a library that it loads have agreed on. */
#ifndef PLUGIN_H
#define PLUGIN_H

#ifdef __cplusplus
extern "C" {
#endif

/* What the host does in the midst of what its library does. */
typedef void (*plugin_meanwhile)(void);

/* Does all that the library does, with a coordinator of its own, and returns `value`. */
int plugin_run(int value, plugin_meanwhile meanwhile);

/* The version of Milieu that the library uses: the host's own text, where they share one. */
const char *plugin_milieu(void);

#ifdef __cplusplus
}
#endif

#endif
