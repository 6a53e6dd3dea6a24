// Echo: logs through printf, answers the request body. Built by build.sh.
#include <stdio.h>
#include <stdlib.h>
#define IMPORT(n) __attribute__((import_module("plugin_host"), import_name(#n)))
#define EXPORT(n) __attribute__((export_name(#n)))
IMPORT(input_len) int input_len(int kind);
IMPORT(input_read) int input_read(int kind, void *p, int n);
IMPORT(output) int output(const void *p, int n);
IMPORT(respond) int respond(int status, const void *h, int hn, const void *b, int bn);
static const char manifest[] = "{\"abi\":4,\"id\":\"c_echo\",\"name\":\"Echo in c\",\"version\":\"1.0.0\",\"requirements\":[],\"triggers\":[{\"name\":\"echo\",\"type\":\"http\",\"path\":\"/echo\",\"methods\":[\"POST\"]}]}";
__asm__(".section .custom_section.plugin.manifest,\"\",@\n.ascii \"{\\\"abi\\\":4,\\\"id\\\":\\\"c_echo\\\",\\\"name\\\":\\\"Echo in c\\\",\\\"version\\\":\\\"1.0.0\\\",\\\"requirements\\\":[],\\\"triggers\\\":[{\\\"name\\\":\\\"echo\\\",\\\"type\\\":\\\"http\\\",\\\"path\\\":\\\"/echo\\\",\\\"methods\\\":[\\\"POST\\\"]}]}\"\n.text\n");
EXPORT(plugin_describe) int plugin_describe(void) { return output(manifest, sizeof manifest - 1); }
EXPORT(plugin_handle) int plugin_handle(void) {
  int n = input_len(1);
  char *b = malloc(n + 1);
  input_read(1, b, n);
  printf("echo of %d bytes\n", n);
  fflush(stdout);
  return respond(200, "{\"X-Lang\":\"c\"}", 14, b, n);
}
