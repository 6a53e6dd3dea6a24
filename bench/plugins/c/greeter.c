/* The greeter of the benchmark in C: JSON in, JSON out. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST(name) __attribute__((import_module("plugin_host"), import_name(#name)))
HOST(input_len) int input_len(int kind);
HOST(input_read) int input_read(int kind, void *to, int length);
HOST(result_read) int result_read(void *to, int length);
HOST(respond) int respond(int status, const char *headers, int headers_length, const char *body, int length);
HOST(kv_get) int kv_get(const char *key, int length);
HOST(kv_set) int kv_set(const char *key, int length, const char *value, int value_length, int ttl_seconds);

static const char headers[] = "{\"Content-Type\":\"application/json\"}";

/* The text after `"key":"` up to the next quote, or the fallback. */
static const char *field(const char *json, const char *key, const char *fallback) {
  char pattern[64];
  int length = snprintf(pattern, sizeof pattern, "\"%s\":\"", key);
  const char *start = strstr(json, pattern);
  if (start == NULL) return fallback;
  start += length;
  const char *end = strchr(start, '"');
  if (end == NULL) return fallback;
  char *text = malloc(end - start + 1);
  memcpy(text, start, end - start);
  text[end - start] = 0;
  return text;
}

static long visit(const char *name) {
  char key[256], value[32];
  int key_length = snprintf(key, sizeof key, "visits:%.200s", name);
  int length = kv_get(key, key_length);
  memset(value, 0, sizeof value);
  if (length > 0) result_read(value, length < 31 ? length : 31);
  long visits = atol(value) + 1;
  int code = kv_set(key, key_length, value, snprintf(value, sizeof value, "%ld", visits), 0);
  return code < 0 ? code : visits;
}

static unsigned long long number(void) {
  uint64_t drawn = 0;
  getentropy(&drawn, sizeof drawn);
  return drawn >> 11;
}

__attribute__((export_name("plugin_handle"))) int plugin_handle(void) {
  int length = input_len(0);
  char *event = malloc(length + 1);
  input_read(0, event, length);
  event[length] = 0;
  const char *name = field(event, "name", "world");
  const char *trigger = field(event, "trigger", "greet");
  char body[512];
  int n = snprintf(body, sizeof body, "{\"message\":\"Hello, %.200s!\"", name);
  if (strcmp(trigger, "visit") == 0) n += snprintf(body + n, sizeof body - n, ",\"visits\":%ld", visit(name));
  if (strcmp(trigger, "draw") == 0)
    n += snprintf(body + n, sizeof body - n, ",\"numbers\":[%llu,%llu]", number(), number());
  n += snprintf(body + n, sizeof body - n, "}");
  return respond(200, headers, sizeof headers - 1, body, n);
}
