/**
 * plugin_host.h: the kit for plugins in C, for clang with the target wasm32-wasi and wasi-libc.
 *
 * A plugin is a constant `plugin` that declares it, and a handler for each of its triggers:
 *
 *     #include "plugin_host.h"
 *
 *     static ph_code greet(const ph_context *ctx) {
 *       return ph_json(200, ph_object({"message", ph_string(ph_concat("Hello, ", ph_query(ctx, "name")))}));
 *     }
 *
 *     const ph_plugin plugin = {
 *       .id = "hello", .name = "Hello", .version = "1.0.0",
 *       .triggers = PH_TRIGGERS({
 *         .name = "greet", .type = PH_TRIGGER_HTTP, .path = "/greet", .methods = {"GET"}, .handler = greet,
 *       }),
 *     };
 *
 * Any number of files may include this header. `plugin-host plugin build` compiles the functions of the kit once and
 * links those that are used; an author who calls clang by hand defines PLUGIN_HOST_IMPLEMENTATION in one of the files.
 *
 * Memory: everything the kit returns lies in the memory of the execution and ends with it. Nothing has to be freed.
 *
 * Errors: functions that may fail return a ph_code, which is PH_OK or says what was wrong, and write their result
 * through the last parameter. A handler that returns anything but PH_OK ends the execution as failed; the record then
 * has the text of the last error, and the function, file and line of the call that failed. PH_TRY passes an error on.
 *
 * Text: a parameter of the type ph_text takes a string literal, a `char *` or a ph_text.
 */
#ifndef PLUGIN_HOST_H
#define PLUGIN_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The version of the functions of the host this kit uses. */
#define PH_ABI 5

/** A result that must be looked at. */
#define PH_CHECKED __attribute__((warn_unused_result))

/* ---------- text, bytes and memory ---------- */

/**
 * Text in UTF-8, or bytes, with their length: they may contain NUL characters. What the kit returns has a NUL behind
 * its last byte, so that `data` is a C string too.
 */
typedef struct {
  const char *data;
  size_t length;
} ph_text;

/** Makes a ph_text of a string literal, a `char *` or a ph_text. The functions below do it by themselves. */
#define PH_TEXT(value) \
  _Generic((value), ph_text: ph__same_text, char *: ph__text_of, const char *: ph__text_of)(value)

/** The two arguments of printf for `%.*s`. */
#define PH_ARG(text) (int)(text).length, (text).data

/** Bytes with their length as a ph_text; not copied. */
static inline ph_text ph_bytes(const void *data, size_t length) { return (ph_text){(const char *)data, length}; }

/** Whether there is no text at all: a query parameter that was not given, a key that is absent. Not so for "". */
bool ph_is_absent(ph_text text);

/** The text, or the fallback where it is absent. */
ph_text ph_or(ph_text text, ph_text fallback);

/** Whether two texts have the same bytes. */
bool ph_equal(ph_text a, ph_text b);

/** Whether a text begins with another one. */
bool ph_starts_with(ph_text text, ph_text prefix);

/** The text behind a prefix, not copied; all of the text when it does not begin with the prefix. */
ph_text ph_strip_prefix(ph_text text, ph_text prefix);

/** The text without spaces, tabs and ends of lines around it; empty for an absent text. */
ph_text ph_trim(ph_text text);

/**
 * Takes the next part off a text, up to a separator. @returns false when `rest` is absent, as behind the last part
 *
 *     while (ph_split(&rest, ";", &part)) ph_log(part);
 */
bool ph_split(ph_text *rest, ph_text separator, ph_text *part);

/** One text behind the other. */
ph_text ph_concat(ph_text a, ph_text b);

/** Text as printf writes it. */
ph_text ph_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Reads a whole number in decimal, all of int64. @returns false for everything else, and leaves `number` alone */
bool ph_to_int(ph_text text, int64_t *number);

/** Text as it stands in an address: all but letters of ASCII, digits and `-._~` becomes `%XX`. */
ph_text ph_url_encode(ph_text text);

/** Bytes as text in base64. */
ph_text ph_base64_encode(ph_text bytes);

/** Bytes of text in base64. @returns false for text that is none, and leaves `bytes` alone */
bool ph_base64_decode(ph_text text, ph_text *bytes);

/** Memory of the execution, filled with zeros. The execution ends as failed when there is no more. */
void *ph_alloc(size_t size);

/** Milliseconds since 1970. `time` and `clock_gettime` of the C library work too. */
int64_t ph_now_ms(void);

/** Fills memory with random bytes. `rand` of the C library draws the same numbers in every execution. */
void ph_random(void *to, size_t length);

/* ---------- errors ---------- */

/** How a call ended. */
typedef enum {
  PH_OK = 0,
  PH_PERMISSION_DENIED = -1,
  PH_NOT_FOUND = -2,
  PH_INVALID_ARGUMENT = -3,
  PH_TOO_LARGE = -4,
  PH_UNAVAILABLE = -5,
  PH_DEADLINE_PASSED = -6,
  PH_INTERNAL = -7,
  PH_CONFLICT = -8,
  /** An error of the plugin itself, made with ph_fail. */
  PH_FAILED = 1,
} ph_code;

/** An error: what a call returned, and what there is to say about it. */
typedef struct {
  ph_code code;
  /** The text of the host; of a database it begins with the SQLSTATE. */
  ph_text text;
  /** Lines with function, file and line: the call that failed, and the PH_TRY that passed it on. */
  ph_text trace;
} ph_error;

/** The error of the last call that failed. */
const ph_error *ph_last_error(void);

/** The name of a code, like `not_found`. */
const char *ph_code_name(ph_code code);

/** Makes an error of the plugin's own: `return ph_fail("there is no such slot");`. @returns PH_FAILED */
PH_CHECKED ph_code ph_fail(ph_text reason);

/** Ends the execution as failed at once, for what must not happen; `assert` does the same. */
_Noreturn void ph_panic(ph_text reason);

/** Returns from the function, with the code of the call, unless it is PH_OK. */
#define PH_TRY(call) \
  do { \
    const ph_code ph__code = (call); \
    if (ph__code != PH_OK) return ph__passed_on(ph__code, PH__PLACE); \
  } while (0)

/* ---------- JSON ---------- */

/** A value of JSON, read or made. Numbers keep all their digits. */
typedef struct ph_value ph_value;

typedef enum { PH_NULL, PH_BOOL, PH_NUMBER, PH_STRING, PH_ARRAY, PH_OBJECT, PH_BYTES } ph_kind;

/** Reads JSON. PH_INVALID_ARGUMENT says where it is none. */
PH_CHECKED ph_code ph_json_parse(ph_text text, const ph_value **value);

/** Writes JSON, without spaces. What is no UTF-8 in its texts becomes U+FFFD. */
ph_text ph_json_text(const ph_value *value);

/** What kind of value it is; PH_NULL for no value. */
ph_kind ph_kind_of(const ph_value *value);

/** How many members an object has, or elements an array; 0 for all others. */
size_t ph_count(const ph_value *value);

/** An element of an array, or the value of a member of an object; NULL behind the last. */
const ph_value *ph_item(const ph_value *value, size_t index);

/** The name of a member of an object; absent behind the last. */
ph_text ph_member_name(const ph_value *value, size_t index);

/** The value of a member by its name; NULL when there is none, and when `value` is no object. */
const ph_value *ph_get(const ph_value *value, ph_text name);

/** The text of a string, the digits of a number; absent for all others. */
ph_text ph_as_text(const ph_value *value);

/** The string of a member by its name; absent when there is none, and when it is no string. */
ph_text ph_get_string(const ph_value *value, ph_text name);

/** A whole number, all of int64. @returns false for everything else, and leaves `number` alone */
bool ph_as_int(const ph_value *value, int64_t *number);

/** A number. @returns false for everything else, and leaves `number` alone */
bool ph_as_double(const ph_value *value, double *number);

/** Whether it is true. */
bool ph_as_bool(const ph_value *value);

/** The bytes of a string in base64, as `bytea` comes from a database. @returns false for everything else */
bool ph_as_bytes(const ph_value *value, ph_text *bytes);

ph_value *ph_null(void);
ph_value *ph_bool(bool value);
ph_value *ph_int(int64_t value);
/** A number; null for what JSON has no number for (NaN, infinity). */
ph_value *ph_double(double value);
/** A number by its digits, which arrive as written. */
ph_value *ph_number(ph_text digits);
/** A string, with a copy of the text; null for an absent one. */
ph_value *ph_string(ph_text text);
/** Bytes, without a copy; null for absent ones. A string in base64 in JSON, `bytea` as an argument of a statement. */
ph_value *ph_bytes_value(ph_text bytes);

typedef struct {
  const char *name;
  const ph_value *value;
} ph_member;

/** An object: `ph_object({"name", ph_string(name)}, {"age", ph_int(7)})`. A value NULL becomes null. */
#define ph_object(...) ph__object((const ph_member[]){__VA_ARGS__ __VA_OPT__(, ){NULL, NULL}})

/** An array: `ph_array(ph_int(1), ph_int(2))`. A value NULL becomes null. */
#define ph_array(...) ph__array((const ph_value *const[]){__VA_ARGS__ __VA_OPT__(, ) ph__array_end})

/** Adds a member to an object of ph_object. @returns the object */
ph_value *ph_set(ph_value *object, ph_text name, const ph_value *value);

/** Adds an element to an array of ph_array. @returns the array */
ph_value *ph_append(ph_value *array, const ph_value *value);

/* ---------- the declaration of the plugin ---------- */

/** A field of the configuration, which the administrator fills in at the installation. Made by PH_STRING. */
typedef struct {
  const char *name;
  const char *description;
  bool required;
  bool sensitive;
} ph_config_field;

/**
 * A text field, which a handler reads with ph_config(name): `PH_STRING("key", "Key of the API", .required = true)`.
 * Also `.sensitive = true`: a secret, stored encrypted and never shown again.
 */
#define PH_STRING(name_, description_, ...) {.name = name_, .description = description_, __VA_ARGS__}

/** The fields of `.config`. */
#define PH_CONFIG(...) (const ph_config_field[]) { __VA_ARGS__, {NULL} }

/** Something a plugin asks its host for. Made by PH_KV, PH_DATABASE and their like. */
typedef struct {
  const char *kind;
  const char *description;
  const char *name;
  const char *target;
  const ph_config_field *config;
} ph_requirement;

/** Requirements take a description for the administrator, and `.config = PH_CONFIG(...)`. */
#define PH_REQUIREMENTS(...) (const ph_requirement[]) { __VA_ARGS__, {NULL} }

/** Asks for a PostgreSQL database: ph_sql_open. `.name` is its logical name; "default" without it. */
#define PH_DATABASE(description_, ...) {.kind = "sql", .description = description_, __VA_ARGS__}
/** Asks for the key-value store: ph_kv_get and its like. */
#define PH_KV(description_, ...) {.kind = "kv", .description = description_, __VA_ARGS__}
/** Asks for requests to other hosts: ph_http_request and its like. */
#define PH_HTTP(description_, ...) {.kind = "network", .description = description_, __VA_ARGS__}
/** Asks for messages to users, chats and students: ph_notify_user and its like. */
#define PH_NOTIFY(description_, ...) {.kind = "notify", .description = description_, __VA_ARGS__}
/** Asks for events: ph_publish_event. */
#define PH_EVENTS(description_, ...) {.kind = "events", .description = description_, __VA_ARGS__}
/** Asks for calls of another plugin: ph_call_plugin. */
#define PH_PLUGIN_DEP(target_, description_, ...) \
  {.kind = "plugins:call", .description = description_, .target = target_, __VA_ARGS__}
/** Asks for files: ph_file_read, ph_file_store and their like. */
#define PH_FILE(description_, ...) {.kind = "file", .description = description_, __VA_ARGS__}

/** Who should call an HTTP trigger, as its author sees it. It counts when the administrator accepts it. */
typedef struct {
  bool is_public;
  bool users;
  bool service_keys;
  /** A CEL expression that must be true as well; not for a public trigger. */
  const char *policy;
  const char *reason;
} ph_access;

/** Callers need no login. The reason is shown to the administrator. */
#define PH_PUBLIC(reason_) (&(const ph_access){.is_public = true, .reason = reason_})
/** Users may call; also `.policy = "..."`. */
#define PH_USERS(reason_, ...) (&(const ph_access){.users = true, .reason = reason_, __VA_ARGS__})
/** Programs with a service key may call; also `.policy = "..."`. */
#define PH_SERVICE_KEYS(reason_, ...) (&(const ph_access){.service_keys = true, .reason = reason_, __VA_ARGS__})
/** Users and programs with a service key may call; also `.policy = "..."`. */
#define PH_USERS_AND_SERVICE_KEYS(reason_, ...) \
  (&(const ph_access){.users = true, .service_keys = true, .reason = reason_, __VA_ARGS__})

typedef struct ph_context ph_context;

/** Handles one event. Anything but PH_OK ends the execution as failed. */
typedef ph_code (*ph_handler)(const ph_context *ctx);

typedef enum {
  /** An endpoint below /api/triggers/http/<plugin id>, with `.path` and `.methods`. */
  PH_TRIGGER_HTTP,
  /** A command of messengers. */
  PH_TRIGGER_MESSENGER,
} ph_trigger_type;

typedef struct {
  const char *name;
  ph_trigger_type type;
  const char *description;
  /** `:name` segments are parameters, read with ph_param. */
  const char *path;
  const char *methods[9];
  /** PH_PUBLIC, PH_USERS, PH_SERVICE_KEYS or PH_USERS_AND_SERVICE_KEYS. */
  const ph_access *access;
  ph_handler handler;
} ph_trigger;

#define PH_TRIGGERS(...) (const ph_trigger[]) { __VA_ARGS__, {NULL} }

/** A function that other plugins may call which require this one (PH_PLUGIN_DEP). */
typedef struct {
  const char *name;
  ph_handler handler;
} ph_function;

#define PH_FUNCTIONS(...) (const ph_function[]) { __VA_ARGS__, {NULL, NULL} }

/** What a plugin declares about itself. */
typedef struct {
  const char *id;
  const char *name;
  const char *version;
  const ph_requirement *requirements;
  const ph_trigger *triggers;
  const ph_function *functions;
} ph_plugin;

/** The declaration of this plugin, which one of its files defines. */
extern const ph_plugin plugin;

/* ---------- what a handler gets ---------- */

/** The principal the host has let in. */
typedef struct {
  /** `user` or `service`. */
  ph_text kind;
  int64_t user_id;
  int64_t service_key_id;
} ph_auth;

/** The request to an HTTP trigger. Parts of it: ph_query, ph_header, ph_param, ph_body. */
typedef struct {
  ph_text method;
  ph_text path;
  ph_text remote_addr;
  /** The query as it was sent, without "?". */
  ph_text raw_query;
  /** An object with a list of texts for each name: all values, in the order they were sent. */
  const ph_value *query_all;
  /** Objects with texts; names of headers in lower case. A name that is given several times in the query has its last value. */
  const ph_value *query;
  const ph_value *headers;
  const ph_value *params;
  /** NULL for a public trigger. */
  const ph_auth *auth;
} ph_request;

/** A file as the host knows it; its content is read with ph_file_read and its like. */
typedef struct {
  ph_text id;
  ph_text name;
  ph_text mime_type;
  /** photo, document, audio, video, voice or sticker. */
  ph_text file_type;
  int64_t size;
} ph_file;

/** A message with a command, as it came in. */
typedef struct {
  ph_text channel;
  ph_text chat_id;
  /** The user who has linked the account; NULL for an account that is not linked. */
  const int64_t *user_id;
  /** All of the text, with the command. */
  ph_text text;
  /** The words behind the command. */
  const ph_text *args;
  size_t arg_count;
  const ph_file *files;
  size_t file_count;
} ph_incoming;

/** What another plugin asked for; ph_body gives what it passed. */
typedef struct {
  /** The id of the plugin that calls. */
  ph_text from;
  ph_text function;
  const ph_auth *auth;
} ph_call;

/** What a handler gets of its execution. */
struct ph_context {
  ph_text trigger;
  ph_text request_id;
  int64_t deadline_ms;
  /** NULL unless an HTTP trigger is handled. */
  const ph_request *http;
  /** NULL unless a messenger trigger is handled. */
  const ph_incoming *message;
  /** NULL unless a function is handled. */
  const ph_call *call;
};

/** A query parameter; absent when it was not given. */
ph_text ph_query(const ph_context *ctx, ph_text name);

/** A header of the request, by any spelling; absent when it was not given. */
ph_text ph_header(const ph_context *ctx, ph_text name);

/** The value of a `:name` segment of the path. */
ph_text ph_param(const ph_context *ctx, ph_text name);

/** The body of the request, or what the calling plugin passed. */
ph_text ph_body(const ph_context *ctx);

/** The body as JSON. */
PH_CHECKED ph_code ph_body_json(const ph_context *ctx, const ph_value **value);

/** The body as JSON; NULL, which has no members, when it is none. */
const ph_value *ph_body_or_null(const ph_context *ctx);

/** Whether the message has files. */
bool ph_has_files(const ph_context *ctx);

/* ---------- answers, log, configuration ---------- */

/** Answers with JSON. */
PH_CHECKED ph_code ph_json(int status, const ph_value *value);

/** Answers with the JSON `{"error": reason}`. */
PH_CHECKED ph_code ph_json_error(int status, ph_text reason);

/** Answers with any status, headers (an object of texts, or NULL) and body. The host passes on headers of its list. */
PH_CHECKED ph_code ph_respond(int status, const ph_value *headers, ph_text body);

/** Answers a call of another plugin with a value. */
PH_CHECKED ph_code ph_output(const ph_value *value);

/** Answers a call of another plugin with bytes. */
PH_CHECKED ph_code ph_output_bytes(ph_text bytes);

/** Writes a line of the execution record. */
void ph_log(ph_text line);

/** Writes a line of the execution record, as an error. */
void ph_log_error(ph_text line);

/** A field of the configuration; absent when the administrator has left it empty. */
ph_text ph_config(ph_text name);

/** What a host speaks and allows. */
typedef struct {
  int64_t abi;
  /** An object with numbers. */
  const ph_value *limits;
  /** An array of texts. */
  const ph_value *features;
} ph_info;

/** Asks what this host speaks and allows. */
PH_CHECKED ph_code ph_host_info(ph_info *info);

/* ---------- key-value store: the requirement PH_KV ---------- */

/** The value of a key; PH_NOT_FOUND, and an absent value, when it is absent. */
PH_CHECKED ph_code ph_kv_get(ph_text key, ph_text *value);

/** The values of at most 100 keys, in their order; of absent keys they are absent. */
PH_CHECKED ph_code ph_kv_get_many(const ph_text *keys, size_t count, ph_text *values);

/** Writes a value. It is gone after `ttl_seconds`; 0: it stays. */
PH_CHECKED ph_code ph_kv_set(ph_text key, ph_text value, int32_t ttl_seconds);

/** What became of a conditional write. */
typedef struct {
  bool written;
  /** The value that stood in its way; absent when the key is absent. */
  ph_text present;
} ph_kv_update;

/** Writes only if the key is absent: to claim something that only one caller may have. */
PH_CHECKED ph_code ph_kv_set_if_absent(ph_text key, ph_text value, int32_t ttl_seconds, ph_kv_update *update);

/** Writes only if the value is `expected`: to change what was read before. */
PH_CHECKED ph_code ph_kv_compare_and_set(ph_text key, ph_text expected, ph_text value, int32_t ttl_seconds,
                                         ph_kv_update *update);

/** Adds to a whole number, an absent one counts as 0. `ttl_seconds` 0: as it is. `sum` may be NULL. */
PH_CHECKED ph_code ph_kv_increment(ph_text key, int64_t delta, int32_t ttl_seconds, int64_t *sum);

/** Removes a key. `removed` says whether it was there; it may be NULL. */
PH_CHECKED ph_code ph_kv_delete(ph_text key, bool *removed);

/** Keys in order, and the key to go on after; absent at the end. */
typedef struct {
  const ph_text *keys;
  size_t count;
  ph_text next;
} ph_keys;

/** Lists keys that begin with `prefix`, behind the key `after` (empty: from the first); at most `limit` (0: 1000). */
PH_CHECKED ph_code ph_kv_list(ph_text prefix, ph_text after, int32_t limit, ph_keys *page);

/* ---------- databases: the requirement PH_DATABASE ---------- */

/** Where statements go: a connection of its own, or a transaction. An execution may have two open to one database. */
typedef struct {
  int32_t handle;
} ph_sql;

/** Opens a connection to a database by its logical name; empty: "default". */
PH_CHECKED ph_code ph_sql_open(ph_text name, ph_sql *connection);

/**
 * What a statement gave:
 *
 *     while (ph_sql_next(&rows)) ph_log(ph_sql_text(&rows, 0));
 *     PH_TRY(rows.code);
 */
typedef struct {
  /** An array of `{"name", "type"}`. */
  const ph_value *columns;
  /** The row that ph_sql_next has reached: an array of values. */
  const ph_value *row;
  /** Why there are no further rows; PH_OK at the end. */
  ph_code code;
  const ph_value *ph__page;
  size_t ph__at;
  int32_t ph__cursor;
} ph_rows;

/**
 * Runs one statement that gives rows. The text of an error begins with the SQLSTATE.
 *
 * `values` is an array, or NULL: `ph_array(ph_int(7), ph_string("x"), ph_null())`. Bytes are ph_bytes_value, an inner
 * array is a list (`int8[]`), an object is `jsonb`; any value is `jsonb` with ph_sql_json.
 */
PH_CHECKED ph_code ph_sql_query(ph_sql at, ph_text statement, const ph_value *values, ph_rows *rows);

/** Runs one statement. `changed` is how many rows it changed; it may be NULL. */
PH_CHECKED ph_code ph_sql_exec(ph_sql at, ph_text statement, const ph_value *values, int64_t *changed);

/** Goes on to the next row; false behind the last one and when it failed (`code` of the rows). */
bool ph_sql_next(ph_rows *rows);

/** A value of the row. Times, numerics and UUIDs are strings, `bytea` is base64 (ph_as_bytes). */
const ph_value *ph_sql_value(const ph_rows *rows, size_t column);

/** The text of a value of the row; absent for null. */
ph_text ph_sql_text(const ph_rows *rows, size_t column);

/** A whole number of the row, also of a numeric without a fraction, which sum(bigint) is; 0 for everything else. */
int64_t ph_sql_int(const ph_rows *rows, size_t column);

/** The row as an object, by the names of its columns. */
ph_value *ph_sql_object(const ph_rows *rows);

/** A value of JSON as an argument of a statement, for `json` and `jsonb`. */
ph_value *ph_sql_json(const ph_value *value);

/** Begins a transaction. It is rolled back when the execution ends without ph_sql_commit. */
PH_CHECKED ph_code ph_sql_begin(ph_sql connection, ph_sql *transaction);

/** Ends a transaction. */
PH_CHECKED ph_code ph_sql_commit(ph_sql transaction);

/** Undoes a transaction. */
PH_CHECKED ph_code ph_sql_rollback(ph_sql transaction);

/** Gives a connection back, or rolls a transaction back. All of them close when the execution ends. */
PH_CHECKED ph_code ph_sql_close(ph_sql at);

/** Gives the connection back to other statements before the last row. */
PH_CHECKED ph_code ph_rows_close(ph_rows *rows);

/* ---------- other hosts: the requirement PH_HTTP ---------- */

/** A request to another host. Texts of literals are written `PH_TEXT("...")`. */
typedef struct {
  /** GET when it is absent. */
  ph_text method;
  ph_text url;
  /** An object of texts, or NULL. */
  const ph_value *headers;
  ph_text body;
  /** 0: until 250 ms before the execution ends. */
  int32_t timeout_ms;
} ph_http_order;

/** What a server outside answered. */
typedef struct {
  int status;
  /** An object by names in lower case; several values of one name are one list with commas. */
  const ph_value *headers;
  /** Where the answer came from, behind redirects. */
  ph_text url;
  ph_text body;
} ph_http_answer;

/** Sends a request. An answer with status 404 or 500 is no error. */
PH_CHECKED ph_code ph_http_request(const ph_http_order *order, ph_http_answer *answer);

/** Asks for an address. */
PH_CHECKED ph_code ph_http_get(ph_text url, ph_http_answer *answer);

/** Sends a body to an address. */
PH_CHECKED ph_code ph_http_post(ph_text url, ph_text content_type, ph_text body, ph_http_answer *answer);

/** A header of an answer, by any spelling; absent when it has none. */
ph_text ph_answer_header(const ph_http_answer *answer, ph_text name);

/* ---------- files: the requirement PH_FILE ---------- */

/** What the host knows of a file. */
PH_CHECKED ph_code ph_file_meta(ph_text id, ph_file *file);

/** Reads a part: at most 1 MB, which is also what `most` 0 means. `is_end` says whether the file ends there. */
PH_CHECKED ph_code ph_file_read(ph_text id, int64_t offset, size_t most, ph_text *part, bool *is_end);

/** Reads a part into memory of the caller: at most `size` bytes, and 1 MB. `read` says how many it were. */
PH_CHECKED ph_code ph_file_read_into(ph_text id, int64_t offset, void *to, size_t size, size_t *read, bool *is_end);

/** Reads a whole file. */
PH_CHECKED ph_code ph_file_read_all(ph_text id, ph_text *content);

/** What is known of a file as an object: `id`, `name`, `mime_type`, `size` and `file_type`. */
ph_value *ph_file_value(const ph_file *file);

/** An address at which the file can be read for a while; empty when the store has no such links. */
PH_CHECKED ph_code ph_file_url(ph_text id, ph_text *url);

/** Stores a new file. `file_type`: photo, document, audio, video, voice or sticker. */
PH_CHECKED ph_code ph_file_store(ph_text name, ph_text mime_type, ph_text file_type, ph_text content, ph_file *file);

/** Stores a file that is deleted after a time in milliseconds. */
PH_CHECKED ph_code ph_file_store_with_ttl(ph_text name, ph_text mime_type, ph_text file_type, ph_text content,
                                          int64_t ttl_ms, ph_file *file);

/* ---------- messages: the requirement PH_NOTIFY; ph_reply needs none ---------- */

/** A message to be sent: a text, files, or both. */
typedef struct ph_message ph_message;

/** Makes a message; the text may be empty when files are attached. */
ph_message *ph_new_message(ph_text text);

/** Attaches a file; may be called several times. The caption may be empty. @returns the message */
ph_message *ph_message_file(ph_message *message, const ph_file *file, ph_text caption);

/** Answers a command with a message; may be called 20 times. */
PH_CHECKED ph_code ph_reply(const ph_message *message);

/** Writes to a user, on the user's primary channel. */
PH_CHECKED ph_code ph_notify_user(int64_t user_id, const ph_message *message);

/** Writes to a chat that has written before. */
PH_CHECKED ph_code ph_notify_chat(ph_text chat_id, const ph_message *message);

/** Which students a message is for: each member is an array of texts; what is NULL does not matter. */
typedef struct {
  bool all;
  const ph_value *streams;
  const ph_value *groups;
  const ph_value *subgroups;
  const ph_value *nationality_type;
  const ph_value *funding_type;
  const ph_value *education_form;
  const ph_value *locale;
  const ph_value *primary_channel;
} ph_students;

/** How many messages were queued, and how many students cannot be reached. */
typedef struct {
  int64_t queued;
  int64_t unreachable;
} ph_queued;

/** Writes to all students a filter selects. `queued` may be NULL. */
PH_CHECKED ph_code ph_notify_students(const ph_students *filter, const ph_message *message, ph_queued *queued);

/* ---------- events: the requirement PH_EVENTS ---------- */

/** Publishes an event; once it returns PH_OK the event is stored and will be delivered. */
PH_CHECKED ph_code ph_publish_event(ph_text name, const ph_value *payload);

/* ---------- other plugins: the requirement PH_PLUGIN_DEP ---------- */

/** Calls a function of another plugin with a value and reads its answer, which is JSON. */
PH_CHECKED ph_code ph_call_plugin(ph_text target, ph_text function, const ph_value *value, const ph_value **answer);

/**
 * Calls a function of another plugin with a value and writes the bytes of its answer into a buffer of yours; no NUL is
 * added. `*length` becomes their number. An answer that does not fit is PH_TOO_LARGE: the other plugin has run, but
 * neither the buffer nor `*length` is written.
 */
PH_CHECKED ph_code ph_call_plugin_into(
  ph_text target, ph_text function, const ph_value *value, void *buffer, size_t size, size_t *length);

/** Calls a function of another plugin with bytes and gives its answer. */
PH_CHECKED ph_code ph_call_plugin_raw(ph_text target, ph_text function, ph_text bytes, ph_text *answer);

/* ---------- used by the macros ---------- */

/** A place in a source. */
typedef struct {
  const char *function;
  const char *file;
  int line;
} ph__place;

/** The place of the last call of a function that may fail: it is named when the call fails. */
extern const ph__place *ph__called_at;
extern const ph_value *const ph__array_end;

#define PH__PLACE ({ static const ph__place ph__here = {__func__, __FILE__, __LINE__}; &ph__here; })
#define PH__CALL(call) (ph__called_at = PH__PLACE, call)

ph_text ph__text_of(const char *text);
static inline ph_text ph__same_text(ph_text text) { return text; }
ph_value *ph__object(const ph_member *members);
ph_value *ph__array(const ph_value *const *items);
ph_code ph__passed_on(ph_code code, const ph__place *place);

/* ---------- the functions, compiled once ---------- */

#ifdef PLUGIN_HOST_IMPLEMENTATION

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Weak, so that a file which defines PLUGIN_HOST_IMPLEMENTATION can be built by plugin-host too. */
#define PH__WEAK __attribute__((weak))
#define PH__HOST(name) __attribute__((import_module("plugin_host"), import_name(#name))) int32_t ph__host_##name

PH__HOST(input_len)(int32_t kind);
PH__HOST(input_read)(int32_t kind, void *to, size_t length);
PH__HOST(result_read)(void *to, size_t length);
PH__HOST(body_len)(void);
PH__HOST(body_read)(int32_t from, void *to, size_t length);
PH__HOST(error_len)(void);
PH__HOST(error_read)(void *to, size_t length);
PH__HOST(host_info)(void);
PH__HOST(config_get)(const char *name, size_t name_length);
PH__HOST(respond)(int32_t status, const char *headers, size_t headers_length, const char *body, size_t length);
PH__HOST(reply)(const char *message, size_t length);
PH__HOST(output)(const char *bytes, size_t length);
PH__HOST(fail)(const char *text, size_t length);
PH__HOST(log)(int32_t level, const char *text, size_t length);
PH__HOST(kv_get)(const char *key, size_t key_length);
PH__HOST(kv_set)(const char *key, size_t key_length, const char *value, size_t length, int32_t ttl_seconds);
PH__HOST(kv_delete)(const char *key, size_t key_length);
PH__HOST(kv_list)(const char *prefix, size_t prefix_length, const char *after, size_t after_length, int32_t limit);
PH__HOST(kv_get_many)(const char *keys, size_t length);
PH__HOST(kv_update)(const char *key, size_t key_length, int32_t mode, const char *expected, size_t expected_length,
                    const char *value, size_t length, int32_t ttl_seconds);
PH__HOST(kv_increment)(const char *key, size_t key_length, int64_t delta, int32_t ttl_seconds);
PH__HOST(sql_open)(const char *name, size_t name_length);
PH__HOST(sql_query)(int32_t handle, const char *statement, size_t statement_length, const char *values, size_t length,
                    int32_t rows_max);
PH__HOST(sql_fetch)(int32_t cursor, int32_t rows_max);
PH__HOST(sql_exec)(int32_t handle, const char *statement, size_t statement_length, const char *values, size_t length);
PH__HOST(sql_begin)(int32_t handle);
PH__HOST(sql_commit)(int32_t transaction);
PH__HOST(sql_rollback)(int32_t transaction);
PH__HOST(sql_close)(int32_t handle);
PH__HOST(http_request)(const char *order, size_t order_length, const char *body, size_t length);
PH__HOST(file_meta)(const char *id, size_t id_length);
PH__HOST(file_url)(const char *id, size_t id_length);
PH__HOST(file_store)(const char *order, size_t order_length, const char *content, size_t length);
PH__HOST(file_read_into)(const char *id, size_t id_length, int64_t offset, void *to, size_t length);
PH__HOST(plugin_call)(const char *target, size_t target_length, const char *function, size_t function_length,
                      const char *bytes, size_t length);
PH__HOST(notify_user)(int64_t user_id, const char *message, size_t length);
PH__HOST(notify_chat)(const char *chat_id, size_t chat_id_length, const char *message, size_t length);
PH__HOST(notify_students)(const char *filter, size_t filter_length, const char *message, size_t length);
PH__HOST(event_publish)(const char *name, size_t name_length, const char *payload, size_t length);

/* Returns an error without naming a place: that of the caller is noted already. */
#define PH__TRY(call) \
  do { \
    const ph_code ph__code = (call); \
    if (ph__code != PH_OK) return ph__code; \
  } while (0)

/* Both arguments of the host for a text. */
#define PH__PASS(text) (text).data, (text).length
#define PH__T(text) ((ph_text){text, sizeof(text) - 1})
#define PH__COUNT(array) (sizeof(array) / sizeof *(array))

/* ----- memory ----- */

PH__WEAK const ph__place *ph__called_at;
PH__WEAK const char ph__absent[1];

/* Ends the execution as failed: the host takes the reason, and the trap gives the stack. Writes what printf has kept. */
_Noreturn static void ph__stop(ph_text reason) {
  fflush(NULL);
  ph__host_fail(PH__PASS(reason));
  __builtin_trap();
}

enum { PH__CHUNK = 16 * 1024 };

/* Memory without a promise of its content, with one byte more for a NUL. */
static char *ph__room(size_t size) {
  static char *chunk;
  static size_t left;
  /* Multiples of 8, so that every type can lie there. */
  const size_t wanted = (size + 8) & ~(size_t)7;
  if (wanted < size) ph__stop(PH__T("out of memory: an execution may have 512 MB"));
  if (wanted <= left) {
    char *room = chunk;
    chunk += wanted;
    left -= wanted;
    return room;
  }
  const bool is_large = wanted > PH__CHUNK / 4;
  char *room = (char *)malloc(is_large ? wanted : PH__CHUNK);
  if (!room) ph__stop(PH__T("out of memory: an execution may have 512 MB"));
  if (!is_large) {
    chunk = room + wanted;
    left = PH__CHUNK - wanted;
  }
  return room;
}

PH__WEAK void *ph_alloc(size_t size) { return memset(ph__room(size), 0, size); }

static ph_text ph__ended(char *data, size_t length) {
  data[length] = 0;
  return (ph_text){data, length};
}

/* ----- text ----- */

static ph_text ph__no_text(void) { return (ph_text){ph__absent, 0}; }

PH__WEAK ph_text ph__text_of(const char *text) { return text ? (ph_text){text, strlen(text)} : ph__no_text(); }

PH__WEAK bool ph_is_absent(ph_text text) { return text.data == ph__absent || text.data == NULL; }

PH__WEAK ph_text ph_or(ph_text text, ph_text fallback) { return ph_is_absent(text) ? fallback : text; }

PH__WEAK bool ph_equal(ph_text a, ph_text b) { return a.length == b.length && memcmp(a.data, b.data, a.length) == 0; }

PH__WEAK bool ph_starts_with(ph_text text, ph_text prefix) {
  return text.length >= prefix.length && memcmp(text.data, prefix.data, prefix.length) == 0;
}

PH__WEAK ph_text ph_strip_prefix(ph_text text, ph_text prefix) {
  if (!ph_starts_with(text, prefix)) return text;
  return (ph_text){text.data + prefix.length, text.length - prefix.length};
}

static ph_text ph__copy(const char *from, size_t length) {
  char *room = ph__room(length);
  memcpy(room, from, length);
  return ph__ended(room, length);
}

static bool ph__is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

PH__WEAK ph_text ph_trim(ph_text text) {
  const char *from = text.data;
  const char *end = text.data + text.length;
  while (from < end && ph__is_space(*from)) from++;
  while (from < end && ph__is_space(end[-1])) end--;
  return ph__copy(from, (size_t)(end - from));
}

PH__WEAK bool ph_split(ph_text *rest, ph_text separator, ph_text *part) {
  if (ph_is_absent(*rest)) return false;
  for (size_t k = 0; k + separator.length <= rest->length && separator.length > 0; k++) {
    if (memcmp(rest->data + k, separator.data, separator.length) != 0) continue;
    *part = ph__copy(rest->data, k);
    const size_t behind = k + separator.length;
    *rest = (ph_text){rest->data + behind, rest->length - behind};
    return true;
  }
  *part = ph__copy(rest->data, rest->length);
  *rest = ph__no_text();
  return true;
}

PH__WEAK ph_text ph_concat(ph_text a, ph_text b) {
  char *room = ph__room(a.length + b.length);
  memcpy(room, a.data, a.length);
  memcpy(room + a.length, b.data, b.length);
  return ph__ended(room, a.length + b.length);
}

PH__WEAK ph_text ph_format(const char *format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  const int length = vsnprintf(NULL, 0, format, values);
  va_end(values);
  if (length < 0) ph__stop(PH__T("ph_format: vsnprintf does not know the format"));
  char *room = ph__room((size_t)length);
  vsnprintf(room, (size_t)length + 1, format, again);
  va_end(again);
  return (ph_text){room, (size_t)length};
}

static ph_text ph__decimal(int64_t number) {
  char digits[20];
  size_t at = sizeof digits;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (number < 0) digits[--at] = '-';
  char *room = ph__room(sizeof digits - at);
  memcpy(room, digits + at, sizeof digits - at);
  return ph__ended(room, sizeof digits - at);
}

PH__WEAK bool ph_to_int(ph_text text, int64_t *number) {
  const bool negative = text.length > 0 && text.data[0] == '-';
  const uint64_t most = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
  uint64_t value = 0;
  if (text.length == (size_t)negative) return false;
  for (size_t k = negative; k < text.length; k++) {
    const unsigned digit = (unsigned char)text.data[k] - (unsigned)'0';
    if (digit > 9 || value > (most - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *number = (int64_t)(negative ? 0 - value : value);
  return true;
}

static bool ph__is_unreserved(char c) {
  const bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  return is_letter || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

PH__WEAK ph_text ph_url_encode(ph_text text) {
  static const char hex[] = "0123456789ABCDEF";
  char *room = ph__room(text.length * 3);
  char *to = room;
  for (size_t k = 0; k < text.length; k++) {
    const char c = text.data[k];
    if (ph__is_unreserved(c)) {
      *to++ = c;
      continue;
    }
    *to++ = '%';
    *to++ = hex[(unsigned char)c >> 4];
    *to++ = hex[c & 15];
  }
  return ph__ended(room, (size_t)(to - room));
}

static const char ph__base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

PH__WEAK ph_text ph_base64_encode(ph_text bytes) {
  const unsigned char *from = (const unsigned char *)bytes.data;
  char *room = ph__room((bytes.length + 2) / 3 * 4);
  char *to = room;
  for (size_t k = 0; k < bytes.length; k += 3) {
    const size_t left = bytes.length - k;
    const uint32_t three =
      (uint32_t)from[k] << 16 | (left > 1 ? (uint32_t)from[k + 1] << 8 : 0) | (left > 2 ? from[k + 2] : 0);
    *to++ = ph__base64_digits[three >> 18];
    *to++ = ph__base64_digits[three >> 12 & 63];
    *to++ = left > 1 ? ph__base64_digits[three >> 6 & 63] : '=';
    *to++ = left > 2 ? ph__base64_digits[three & 63] : '=';
  }
  return ph__ended(room, (size_t)(to - room));
}

static int ph__base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

PH__WEAK bool ph_base64_decode(ph_text text, ph_text *bytes) {
  size_t length = text.length;
  if (length % 4 != 0) return false;
  if (length > 0 && text.data[length - 1] == '=') length -= text.data[length - 2] == '=' ? 2 : 1;
  char *room = ph__room(text.length / 4 * 3);
  char *to = room;
  uint32_t bits = 0;
  int count = 0;
  for (size_t k = 0; k < length; k++) {
    const int value = ph__base64_value(text.data[k]);
    if (value < 0) return false;
    bits = bits << 6 | (uint32_t)value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    *to++ = (char)(bits >> count);
  }
  *bytes = ph__ended(room, (size_t)(to - room));
  return true;
}

PH__WEAK int64_t ph_now_ms(void) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return 0;
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

PH__WEAK void ph_random(void *to, size_t length) {
  /* getentropy gives at most 256 bytes. */
  for (size_t at = 0; at < length; at += 256)
    if (getentropy((char *)to + at, length - at < 256 ? length - at : 256) != 0)
      ph__stop(PH__T("the host gives no random numbers"));
}

/* ----- errors ----- */

static ph_error ph__error;
/* The last place that stands in the trace. */
static const ph__place *ph__traced;

static void ph__trace(const ph__place *place) {
  if (!place) return;
  if (ph__traced && strcmp(ph__traced->function, place->function) == 0 && strcmp(ph__traced->file, place->file) == 0)
    return;
  ph__traced = place;
  ph_text line = ph_concat(PH__T("    at "), ph__text_of(place->function));
  line = ph_concat(ph_concat(line, PH__T(" (")), ph__text_of(place->file));
  line = ph_concat(ph_concat(line, PH__T(":")), ph__decimal(place->line));
  line = ph_concat(line, PH__T(")"));
  const ph_text before = ph__error.trace;
  ph__error.trace = ph_is_absent(before) ? line : ph_concat(ph_concat(before, PH__T("\n")), line);
}

static ph_code ph__note(ph_code code, ph_text text) {
  ph__error = (ph_error){code, text, ph__no_text()};
  ph__traced = NULL;
  ph__trace(ph__called_at);
  return code;
}

/* The error of the host behind a result below zero. */
static ph_code ph__refused(int32_t result) {
  const size_t length = (size_t)ph__host_error_len();
  char *room = ph__room(length);
  if (length > 0) ph__host_error_read(room, length);
  return ph__note(result < PH_CONFLICT ? PH_INTERNAL : (ph_code)result, ph__ended(room, length));
}

static ph_code ph__checked(int32_t result) { return result < 0 ? ph__refused(result) : PH_OK; }

/* An error of a function of the plugin that made none with ph_fail. */
static ph_text ph__returned(ph_code code) {
  ph_text text = ph_concat(PH__T("a function returned "), ph__decimal(code));
  return code < 0 && code >= PH_CONFLICT
    ? ph_concat(ph_concat(ph_concat(text, PH__T(" (")), ph__text_of(ph_code_name(code))), PH__T(")"))
    : text;
}

PH__WEAK ph_code ph__passed_on(ph_code code, const ph__place *place) {
  if (ph__error.code != code) {
    ph__called_at = place;
    return ph__note(code, ph__returned(code));
  }
  ph__trace(place);
  return code;
}

PH__WEAK const ph_error *ph_last_error(void) { return &ph__error; }

PH__WEAK const char *ph_code_name(ph_code code) {
  switch (code) {
    case PH_OK: return "ok";
    case PH_PERMISSION_DENIED: return "permission_denied";
    case PH_NOT_FOUND: return "not_found";
    case PH_INVALID_ARGUMENT: return "invalid_argument";
    case PH_TOO_LARGE: return "too_large";
    case PH_UNAVAILABLE: return "unavailable";
    case PH_DEADLINE_PASSED: return "deadline_passed";
    case PH_CONFLICT: return "conflict";
    case PH_FAILED: return "failed";
    default: return "internal";
  }
}

PH__WEAK ph_code ph_fail(ph_text reason) { return ph__note(PH_FAILED, reason); }

PH__WEAK void ph_panic(ph_text reason) { ph__stop(ph_concat(PH__T("panic: "), reason)); }

/* In place of that of the C library, which writes to the log and says nothing in the record. */
_Noreturn PH__WEAK void __assert_fail(const char *text, const char *file, int line, const char *function) {
  (void)file, (void)line, (void)function;
  ph__stop(ph_concat(PH__T("assertion failed: "), ph__text_of(text)));
}

/* ----- JSON: values ----- */

/* A value of JSON as an argument of a statement. */
enum { PH__SQL_JSON = PH_BYTES + 1 };

typedef struct {
  ph_text name;
  const ph_value *value;
} ph__named;

struct ph_value {
  int kind;
  bool boolean;
  uint32_t count;
  uint32_t room;
  union {
    ph_text text;
    const ph_value **items;
    ph__named *members;
  };
};

PH__WEAK const ph_value *const ph__array_end = &(const ph_value){.kind = PH_NULL};

static ph_value *ph__value(int kind) {
  ph_value *value = (ph_value *)ph_alloc(sizeof *value);
  value->kind = kind;
  return value;
}

static ph_value *ph__text_value(int kind, ph_text text) {
  ph_value *value = ph__value(kind);
  value->text = text;
  return value;
}

PH__WEAK ph_value *ph_null(void) { return ph__value(PH_NULL); }

PH__WEAK ph_value *ph_bool(bool boolean) {
  ph_value *value = ph__value(PH_BOOL);
  value->boolean = boolean;
  return value;
}

PH__WEAK ph_value *ph_int(int64_t number) { return ph__text_value(PH_NUMBER, ph__decimal(number)); }

PH__WEAK ph_value *ph_double(double number) {
  if (number - number != 0) return ph_null();
  /* The fewest digits that give the same number again. */
  ph_text digits = ph__no_text();
  for (int count = 15; count <= 17; count++) {
    digits = ph_format("%.*g", count, number);
    if (strtod(digits.data, NULL) == number) break;
  }
  return ph__text_value(PH_NUMBER, digits);
}

PH__WEAK ph_value *ph_number(ph_text digits) { return ph__text_value(PH_NUMBER, digits); }

PH__WEAK ph_value *ph_string(ph_text text) {
  return ph_is_absent(text) ? ph_null() : ph__text_value(PH_STRING, ph__copy(text.data, text.length));
}

PH__WEAK ph_value *ph_bytes_value(ph_text bytes) {
  return ph_is_absent(bytes) ? ph_null() : ph__text_value(PH_BYTES, bytes);
}

PH__WEAK ph_value *ph_sql_json(const ph_value *value) { return ph_append(ph__value(PH__SQL_JSON), value); }

/* Room for one more item of `size` bytes behind those there are. */
static void *ph__grown(ph_value *container, void *items, size_t size) {
  if (container->count < container->room) return items;
  container->room = container->room == 0 ? 4 : container->room * 2;
  void *more = ph__room(container->room * size);
  if (container->count > 0) memcpy(more, items, container->count * size);
  return more;
}

PH__WEAK ph_value *ph_append(ph_value *array, const ph_value *value) {
  array->items = (const ph_value **)ph__grown(array, array->items, sizeof *array->items);
  array->items[array->count++] = value;
  return array;
}

static void ph__add_member(ph_value *object, ph_text name, const ph_value *value) {
  object->members = (ph__named *)ph__grown(object, object->members, sizeof *object->members);
  object->members[object->count++] = (ph__named){name, value};
}

PH__WEAK ph_value *ph_set(ph_value *object, ph_text name, const ph_value *value) {
  for (uint32_t k = 0; k < object->count; k++)
    if (ph_equal(object->members[k].name, name)) {
      object->members[k].value = value;
      return object;
    }
  ph__add_member(object, name, value);
  return object;
}

PH__WEAK ph_value *ph__object(const ph_member *members) {
  ph_value *object = ph__value(PH_OBJECT);
  for (; members->name; members++) ph__add_member(object, ph__text_of(members->name), members->value);
  return object;
}

PH__WEAK ph_value *ph__array(const ph_value *const *items) {
  ph_value *array = ph__value(PH_ARRAY);
  for (; *items != ph__array_end; items++) ph_append(array, *items);
  return array;
}

PH__WEAK ph_kind ph_kind_of(const ph_value *value) { return value ? (ph_kind)value->kind : PH_NULL; }

PH__WEAK size_t ph_count(const ph_value *value) {
  return value && (value->kind == PH_ARRAY || value->kind == PH_OBJECT) ? value->count : 0;
}

PH__WEAK const ph_value *ph_item(const ph_value *value, size_t index) {
  if (index >= ph_count(value)) return NULL;
  return value->kind == PH_OBJECT ? value->members[index].value : value->items[index];
}

PH__WEAK ph_text ph_member_name(const ph_value *value, size_t index) {
  const bool is_there = ph_kind_of(value) == PH_OBJECT && index < value->count;
  return is_there ? value->members[index].name : ph__no_text();
}

PH__WEAK const ph_value *ph_get(const ph_value *value, ph_text name) {
  if (ph_kind_of(value) != PH_OBJECT) return NULL;
  /* Of two members with one name the last counts. */
  for (uint32_t k = value->count; k-- > 0;)
    if (ph_equal(value->members[k].name, name)) return value->members[k].value;
  return NULL;
}

PH__WEAK ph_text ph_as_text(const ph_value *value) {
  const ph_kind kind = ph_kind_of(value);
  return kind == PH_STRING || kind == PH_NUMBER ? value->text : ph__no_text();
}

PH__WEAK ph_text ph_get_string(const ph_value *value, ph_text name) {
  const ph_value *member = ph_get(value, name);
  return ph_kind_of(member) == PH_STRING ? member->text : ph__no_text();
}

PH__WEAK bool ph_as_int(const ph_value *value, int64_t *number) {
  return ph_kind_of(value) == PH_NUMBER && ph_to_int(value->text, number);
}

PH__WEAK bool ph_as_double(const ph_value *value, double *number) {
  if (ph_kind_of(value) != PH_NUMBER) return false;
  *number = strtod(value->text.data, NULL);
  return true;
}

PH__WEAK bool ph_as_bool(const ph_value *value) { return ph_kind_of(value) == PH_BOOL && value->boolean; }

PH__WEAK bool ph_as_bytes(const ph_value *value, ph_text *bytes) {
  if (ph_kind_of(value) == PH_BYTES) {
    *bytes = value->text;
    return true;
  }
  return ph_kind_of(value) == PH_STRING && ph_base64_decode(value->text, bytes);
}

/* ----- JSON: reading ----- */

/* An object or array that is being read, and the name of its next member. */
typedef struct {
  ph_value *value;
  ph_text name;
} ph__open;

typedef struct {
  char *at;
  char *end;
  /* What is wrong at `at`; NULL as long as nothing is. */
  const char *wrong;
  ph__open *open;
  size_t depth;
  size_t room;
} ph__reader;

static void ph__spaces(ph__reader *r) {
  while (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t') r->at++;
}

static bool ph__wrong(ph__reader *r, const char *what) {
  if (!r->wrong) r->wrong = r->at >= r->end ? "it ends too early" : what;
  return false;
}

static bool ph__hex4(const char *from, uint32_t *unit) {
  *unit = 0;
  for (int k = 0; k < 4; k++) {
    const char c = from[k];
    const char lower = (char)(c | 0x20);
    const int digit = c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    if (digit < 0) return false;
    *unit = *unit << 4 | (uint32_t)digit;
  }
  return true;
}

static char *ph__put_utf8(char *to, uint32_t c) {
  if (c < 0x80) {
    *to++ = (char)c;
    return to;
  }
  if (c < 0x800) {
    *to++ = (char)(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      *to++ = (char)(0xe0 | c >> 12);
    } else {
      *to++ = (char)(0xf0 | c >> 18);
      *to++ = (char)(0x80 | (c >> 12 & 63));
    }
    *to++ = (char)(0x80 | (c >> 6 & 63));
  }
  *to++ = (char)(0x80 | (c & 63));
  return to;
}

/* Reads `\uXXXX`, two of them for a surrogate pair; half a pair is U+FFFD. @returns NULL when it is none */
static char *ph__read_unicode(ph__reader *r, char *to) {
  uint32_t unit, low;
  if (!ph__hex4(r->at + 2, &unit)) return NULL;
  r->at += 6;
  const bool is_high = unit >= 0xd800 && unit < 0xdc00;
  if (is_high && r->at[0] == '\\' && r->at[1] == 'u' && ph__hex4(r->at + 2, &low) && low >= 0xdc00 && low < 0xe000) {
    r->at += 6;
    return ph__put_utf8(to, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
  }
  return ph__put_utf8(to, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit);
}

static char ph__escaped(char c) {
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case '"':
    case '\\':
    case '/': return c;
    default: return 0;
  }
}

/* Reads a string where it lies: with escapes it becomes shorter, and a NUL takes the place of its quotation mark. */
static bool ph__read_string(ph__reader *r, ph_text *text) {
  char *from = ++r->at;
  while (*r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= 0x20) r->at++;
  char *to = r->at;
  for (;;) {
    const unsigned char c = (unsigned char)*r->at;
    if (c == '"') break;
    if (c < 0x20) return ph__wrong(r, "a control character in a string");
    if (c != '\\') {
      *to++ = *r->at++;
      continue;
    }
    if (r->at[1] == 'u') {
      char *behind = ph__read_unicode(r, to);
      if (!behind) return ph__wrong(r, "\\u without four hexadecimal digits");
      to = behind;
      continue;
    }
    *to = ph__escaped(r->at[1]);
    if (*to++ == 0) return ph__wrong(r, "an unknown escape");
    r->at += 2;
  }
  r->at++;
  *text = ph__ended(from, (size_t)(to - from));
  return true;
}

static bool ph__digits(ph__reader *r) {
  const char *from = r->at;
  while (*r->at >= '0' && *r->at <= '9') r->at++;
  return r->at > from || ph__wrong(r, "a digit is missing");
}

static ph_value *ph__read_number(ph__reader *r) {
  const char *from = r->at;
  if (*r->at == '-') r->at++;
  if (*r->at == '0') r->at++;
  else if (!ph__digits(r)) return NULL;
  if (*r->at == '.') {
    r->at++;
    if (!ph__digits(r)) return NULL;
  }
  if (*r->at == 'e' || *r->at == 'E') {
    r->at++;
    if (*r->at == '+' || *r->at == '-') r->at++;
    if (!ph__digits(r)) return NULL;
  }
  return ph__text_value(PH_NUMBER, ph__copy(from, (size_t)(r->at - from)));
}

static ph_value *ph__read_word(ph__reader *r, ph_text word, ph_value *value) {
  if ((size_t)(r->end - r->at) < word.length || memcmp(r->at, word.data, word.length) != 0) {
    ph__wrong(r, "not a value");
    return NULL;
  }
  r->at += word.length;
  return value;
}

/* Reads a value that is no object and no array; NULL for what is none. */
static ph_value *ph__read_scalar(ph__reader *r) {
  switch (*r->at) {
    case '"': {
      ph_text text;
      return ph__read_string(r, &text) ? ph__text_value(PH_STRING, text) : NULL;
    }
    case 't': return ph__read_word(r, PH__T("true"), ph_bool(true));
    case 'f': return ph__read_word(r, PH__T("false"), ph_bool(false));
    case 'n': return ph__read_word(r, PH__T("null"), ph_null());
    default:
      if (*r->at == '-' || (*r->at >= '0' && *r->at <= '9')) return ph__read_number(r);
      ph__wrong(r, "not a value");
      return NULL;
  }
}

/* Reads the name of the next member, up to its value. */
static bool ph__read_name(ph__reader *r) {
  ph__spaces(r);
  if (*r->at != '"') return ph__wrong(r, "the name of a member is missing");
  if (!ph__read_string(r, &r->open[r->depth - 1].name)) return false;
  ph__spaces(r);
  if (*r->at != ':') return ph__wrong(r, "a colon is missing");
  r->at++;
  return true;
}

static void ph__push(ph__reader *r, ph_value *value) {
  if (r->depth == r->room) {
    r->room = r->room == 0 ? 16 : r->room * 2;
    ph__open *more = (ph__open *)ph__room(r->room * sizeof *more);
    if (r->depth > 0) memcpy(more, r->open, r->depth * sizeof *more);
    r->open = more;
  }
  r->open[r->depth++] = (ph__open){value, ph__no_text()};
}

/* Begins an object or array. @returns it when it is empty, NULL when its content is to be read, or nothing is right */
static ph_value *ph__begin(ph__reader *r, int kind) {
  ph_value *value = ph__value(kind);
  r->at++;
  ph__spaces(r);
  if (*r->at == (kind == PH_OBJECT ? '}' : ']')) {
    r->at++;
    return value;
  }
  ph__push(r, value);
  if (kind == PH_OBJECT) ph__read_name(r);
  return NULL;
}

/* Puts a value that was read where it belongs. @returns the outermost value when everything was read, else NULL */
static ph_value *ph__finish(ph__reader *r, ph_value *value) {
  while (r->depth > 0) {
    ph__open *open = &r->open[r->depth - 1];
    const bool is_object = open->value->kind == PH_OBJECT;
    if (is_object) ph__add_member(open->value, open->name, value);
    else ph_append(open->value, value);
    ph__spaces(r);
    if (*r->at == ',') {
      r->at++;
      if (is_object) ph__read_name(r);
      return NULL;
    }
    if (*r->at != (is_object ? '}' : ']')) {
      ph__wrong(r, is_object ? "a comma or } is missing" : "a comma or ] is missing");
      return NULL;
    }
    r->at++;
    value = open->value;
    r->depth--;
  }
  ph__spaces(r);
  if (r->at != r->end) ph__wrong(r, "something follows the value");
  return value;
}

/* Reads JSON in memory of its own with a NUL behind it; its strings stay there. Deep nesting needs no stack. */
static ph_code ph__parse(char *data, size_t length, const ph_value **value) {
  ph__reader r = {.at = data, .end = data + length};
  ph_value *done = NULL;
  while (!done && !r.wrong) {
    ph__spaces(&r);
    const int kind = *r.at == '{' ? PH_OBJECT : *r.at == '[' ? PH_ARRAY : PH_NULL;
    ph_value *read = kind == PH_NULL ? ph__read_scalar(&r) : ph__begin(&r, kind);
    if (read && !r.wrong) done = ph__finish(&r, read);
  }
  if (r.wrong) {
    const ph_text where = ph_concat(PH__T("this is not JSON: byte "), ph__decimal(r.at - data));
    return ph__note(PH_INVALID_ARGUMENT, ph_concat(ph_concat(where, PH__T(": ")), ph__text_of(r.wrong)));
  }
  *value = done;
  return PH_OK;
}

PH__WEAK ph_code ph_json_parse(ph_text text, const ph_value **value) {
  char *copy = ph__room(text.length);
  memcpy(copy, text.data, text.length);
  copy[text.length] = 0;
  return ph__parse(copy, text.length, value);
}

/* ----- JSON: writing ----- */

/* A container that is being written. */
typedef struct {
  const ph_value *value;
  uint32_t next;
  /* Whether its elements are arguments of a statement, which are marked with what they are. */
  bool for_sql;
  bool is_marked;
} ph__written;

typedef struct {
  char *data;
  size_t length;
  size_t room;
  ph__written *open;
  size_t depth;
  size_t depth_room;
} ph__writer;

static char *ph__reserve(ph__writer *w, size_t more) {
  if (w->room - w->length <= more) {
    w->room = (w->room == 0 ? 256 : w->room * 2) + more;
    w->data = (char *)realloc(w->data, w->room);
    if (!w->data) ph__stop(PH__T("out of memory: an execution may have 512 MB"));
  }
  return w->data + w->length;
}

static void ph__put(ph__writer *w, ph_text text) {
  memcpy(ph__reserve(w, text.length), text.data, text.length);
  w->length += text.length;
}

/* How many bytes the character has; 0 for what is no UTF-8 (Unicode 15, table 3-7). */
static size_t ph__utf8_length(const unsigned char *at, const unsigned char *end) {
  const unsigned char c = at[0];
  const size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
  if (length < 2) return length;
  if ((size_t)(end - at) < length) return 0;
  const unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
  if (at[1] < low || at[1] > high) return 0;
  for (size_t k = 2; k < length; k++)
    if ((at[k] & 0xc0) != 0x80) return 0;
  return length;
}

static void ph__put_escaped(ph__writer *w, unsigned char c) {
  static const char hex[] = "0123456789abcdef";
  char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
  const char letter = c == '"' || c == '\\' ? (char)c : c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 0;
  if (letter) escape[1] = letter;
  ph__put(w, (ph_text){escape, letter ? 2 : 6});
}

static void ph__put_string(ph__writer *w, ph_text text) {
  const unsigned char *at = (const unsigned char *)text.data;
  const unsigned char *end = at + text.length;
  ph__put(w, PH__T("\""));
  while (at < end) {
    const unsigned char *from = at;
    size_t length = 1;
    while (at < end && *at >= 0x20 && *at != '"' && *at != '\\' && (length = ph__utf8_length(at, end)) > 0)
      at += length;
    ph__put(w, (ph_text){(const char *)from, (size_t)(at - from)});
    if (at == end) break;
    if (*at >= 0x80) ph__put(w, PH__T("\xef\xbf\xbd"));
    else ph__put_escaped(w, *at);
    at++;
  }
  ph__put(w, PH__T("\""));
}

static void ph__write_open(ph__writer *w, const ph_value *value, bool for_sql, bool is_marked) {
  if (w->depth == w->depth_room) {
    w->depth_room = w->depth_room == 0 ? 16 : w->depth_room * 2;
    ph__written *more = (ph__written *)ph__room(w->depth_room * sizeof *more);
    if (w->depth > 0) memcpy(more, w->open, w->depth * sizeof *more);
    w->open = more;
  }
  if (value->kind != PH__SQL_JSON) ph__put(w, value->kind == PH_ARRAY ? PH__T("[") : PH__T("{"));
  w->open[w->depth++] = (ph__written){value, 0, for_sql && value->kind == PH_ARRAY, is_marked};
}

/* Writes a value, or begins it. */
static void ph__write_value(ph__writer *w, const ph_value *value, bool for_sql) {
  switch (value ? value->kind : PH_NULL) {
    case PH_BOOL: return ph__put(w, value->boolean ? PH__T("true") : PH__T("false"));
    case PH_NUMBER: return ph__put(w, value->text);
    case PH_STRING: return ph__put_string(w, value->text);
    case PH_BYTES:
      if (for_sql) ph__put(w, PH__T("{\"base64\":"));
      ph__put_string(w, ph_base64_encode(value->text));
      if (for_sql) ph__put(w, PH__T("}"));
      return;
    case PH_ARRAY:
      if (for_sql) ph__put(w, PH__T("{\"array\":"));
      return ph__write_open(w, value, for_sql, for_sql);
    case PH_OBJECT:
    case PH__SQL_JSON:
      if (for_sql) ph__put(w, PH__T("{\"json\":"));
      return ph__write_open(w, value, false, for_sql);
    default: return ph__put(w, PH__T("null"));
  }
}

static ph_text ph__write_all(ph__writer *w) {
  while (w->depth > 0) {
    ph__written *open = &w->open[w->depth - 1];
    const ph_value *value = open->value;
    if (open->next == value->count) {
      if (value->kind != PH__SQL_JSON) ph__put(w, value->kind == PH_ARRAY ? PH__T("]") : PH__T("}"));
      if (open->is_marked) ph__put(w, PH__T("}"));
      w->depth--;
      continue;
    }
    if (open->next > 0) ph__put(w, PH__T(","));
    const uint32_t k = open->next++;
    if (value->kind == PH_OBJECT) {
      ph__put_string(w, value->members[k].name);
      ph__put(w, PH__T(":"));
      ph__write_value(w, value->members[k].value, false);
    } else {
      ph__write_value(w, value->items[k], open->for_sql);
    }
  }
  ph__reserve(w, 1);
  return ph__ended(w->data, w->length);
}

PH__WEAK ph_text ph_json_text(const ph_value *value) {
  ph__writer w = {0};
  ph__write_value(&w, value, false);
  return ph__write_all(&w);
}

/* The arguments of a statement: a list whose elements say what they are. */
static ph_text ph__sql_values(const ph_value *values) {
  if (!values) return PH__T("[]");
  ph__writer w = {0};
  ph__write_open(&w, values, true, false);
  return ph__write_all(&w);
}

/* ----- results ----- */

/* What the last call has parked. */
static ph_text ph__parked(int32_t length) {
  char *room = ph__room((size_t)length);
  if (length > 0) ph__host_result_read(room, (size_t)length);
  return ph__ended(room, (size_t)length);
}

/* The raw part of the last result. */
static ph_text ph__parked_body(void) {
  const size_t length = (size_t)ph__host_body_len();
  char *room = ph__room(length);
  if (length > 0) ph__host_body_read(0, room, length);
  return ph__ended(room, length);
}

static ph_code ph__parked_text(int32_t length, ph_text *text) {
  if (length < 0) return ph__refused(length);
  *text = ph__parked(length);
  return PH_OK;
}

static ph_code ph__parked_json(int32_t length, const ph_value **value) {
  if (length < 0) return ph__refused(length);
  const ph_text text = ph__parked(length);
  return ph__parse((char *)text.data, text.length, value);
}

static ph_text ph__text_at(const ph_value *object, const char *name) {
  return ph_as_text(ph_get(object, ph__text_of(name)));
}

static int64_t ph__int_at(const ph_value *object, const char *name) {
  int64_t number = 0;
  ph_as_int(ph_get(object, ph__text_of(name)), &number);
  return number;
}

/* ----- the event ----- */

static ph_text ph__input(int32_t kind) {
  const int32_t length = ph__host_input_len(kind);
  char *room = ph__room(length > 0 ? (size_t)length : 0);
  if (length <= 0) return ph__ended(room, 0);
  ph__host_input_read(kind, room, (size_t)length);
  return ph__ended(room, (size_t)length);
}

static const ph_auth *ph__auth(const ph_value *auth) {
  if (ph_kind_of(auth) != PH_OBJECT) return NULL;
  ph_auth *principal = (ph_auth *)ph_alloc(sizeof *principal);
  *principal = (ph_auth){ph__text_at(auth, "kind"), ph__int_at(auth, "user_id"), ph__int_at(auth, "service_key_id")};
  return principal;
}

static ph_file ph__file(const ph_value *file) {
  return (ph_file){
    .id = ph__text_at(file, "id"),
    .name = ph__text_at(file, "name"),
    .mime_type = ph__text_at(file, "mime_type"),
    .file_type = ph__text_at(file, "file_type"),
    .size = ph__int_at(file, "size"),
  };
}

static const ph_request *ph__request(const ph_value *http) {
  ph_request *request = (ph_request *)ph_alloc(sizeof *request);
  *request = (ph_request){
    .method = ph__text_at(http, "method"),
    .path = ph__text_at(http, "path"),
    .remote_addr = ph__text_at(http, "remote_addr"),
    .raw_query = ph__text_at(http, "raw_query"),
    .query_all = ph_get(http, PH__T("query_all")),
    .query = ph_get(http, PH__T("query")),
    .headers = ph_get(http, PH__T("headers")),
    .params = ph_get(http, PH__T("params")),
    .auth = ph__auth(ph_get(http, PH__T("auth"))),
  };
  return request;
}

static const ph_incoming *ph__incoming(const ph_value *message) {
  ph_incoming *incoming = (ph_incoming *)ph_alloc(sizeof *incoming);
  const ph_value *args = ph_get(message, PH__T("args"));
  const ph_value *files = ph_get(message, PH__T("files"));
  ph_text *words = (ph_text *)ph_alloc(ph_count(args) * sizeof *words);
  ph_file *refs = (ph_file *)ph_alloc(ph_count(files) * sizeof *refs);
  for (size_t k = 0; k < ph_count(args); k++) words[k] = ph_as_text(ph_item(args, k));
  for (size_t k = 0; k < ph_count(files); k++) refs[k] = ph__file(ph_item(files, k));
  int64_t *user = (int64_t *)ph_alloc(sizeof *user);
  *incoming = (ph_incoming){
    .channel = ph__text_at(message, "channel"),
    .chat_id = ph__text_at(message, "chat_id"),
    .user_id = ph_as_int(ph_get(message, PH__T("user_id")), user) ? user : NULL,
    .text = ph__text_at(message, "text"),
    .args = words,
    .arg_count = ph_count(args),
    .files = refs,
    .file_count = ph_count(files),
  };
  return incoming;
}

static const ph_call *ph__call(const ph_value *call) {
  ph_call *called = (ph_call *)ph_alloc(sizeof *called);
  *called = (ph_call){
    ph__text_at(call, "from"), ph__text_at(call, "function"), ph__auth(ph_get(call, PH__T("auth")))};
  return called;
}

static ph_context ph__context(const ph_value *event) {
  const ph_value *http = ph_get(event, PH__T("http"));
  const ph_value *message = ph_get(event, PH__T("message"));
  const ph_value *call = ph_get(event, PH__T("call"));
  return (ph_context){
    .trigger = ph__text_at(event, "trigger"),
    .request_id = ph__text_at(event, "request_id"),
    .deadline_ms = ph__int_at(event, "deadline_ms"),
    .http = http ? ph__request(http) : NULL,
    .message = message ? ph__incoming(message) : NULL,
    .call = call ? ph__call(call) : NULL,
  };
}

PH__WEAK ph_text ph_query(const ph_context *ctx, ph_text name) {
  return ctx->http ? ph_as_text(ph_get(ctx->http->query, name)) : ph__no_text();
}

PH__WEAK ph_text ph_param(const ph_context *ctx, ph_text name) {
  return ctx->http ? ph_as_text(ph_get(ctx->http->params, name)) : ph__no_text();
}

/* A header by any spelling; their names are in lower case. */
static ph_text ph__header(const ph_value *headers, ph_text name) {
  char *lower = ph__room(name.length);
  for (size_t k = 0; k < name.length; k++) {
    const char c = name.data[k];
    lower[k] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
  }
  return ph_as_text(ph_get(headers, ph__ended(lower, name.length)));
}

PH__WEAK ph_text ph_header(const ph_context *ctx, ph_text name) {
  return ctx->http ? ph__header(ctx->http->headers, name) : ph__no_text();
}

PH__WEAK ph_text ph_body(const ph_context *ctx) {
  static ph_text body;
  (void)ctx;
  if (!body.data) body = ph__input(1);
  return body;
}

PH__WEAK ph_code ph_body_json(const ph_context *ctx, const ph_value **value) {
  return ph_json_parse(ph_body(ctx), value);
}

PH__WEAK const ph_value *ph_body_or_null(const ph_context *ctx) {
  const ph_value *value;
  return ph_body_json(ctx, &value) == PH_OK ? value : NULL;
}

PH__WEAK bool ph_has_files(const ph_context *ctx) { return ctx->message && ctx->message->file_count > 0; }

/* ----- answers, log, configuration ----- */

PH__WEAK ph_code ph_respond(int status, const ph_value *headers, ph_text body) {
  const ph_text written = headers ? ph_json_text(headers) : PH__T("{}");
  return ph__checked(ph__host_respond(status, PH__PASS(written), PH__PASS(body)));
}

PH__WEAK ph_code ph_json(int status, const ph_value *value) {
  const ph_text headers = PH__T("{\"Content-Type\":\"application/json\"}");
  const ph_text body = ph_json_text(value);
  return ph__checked(ph__host_respond(status, PH__PASS(headers), PH__PASS(body)));
}

PH__WEAK ph_code ph_json_error(int status, ph_text reason) {
  return ph_json(status, ph_object({"error", ph_string(reason)}));
}

PH__WEAK ph_code ph_output_bytes(ph_text bytes) { return ph__checked(ph__host_output(PH__PASS(bytes))); }

PH__WEAK ph_code ph_output(const ph_value *value) { return ph_output_bytes(ph_json_text(value)); }

PH__WEAK void ph_log(ph_text line) { ph__host_log(1, PH__PASS(line)); }

PH__WEAK void ph_log_error(ph_text line) { ph__host_log(3, PH__PASS(line)); }

PH__WEAK ph_text ph_config(ph_text name) {
  const int32_t length = ph__host_config_get(PH__PASS(name));
  return length <= 0 ? ph__no_text() : ph__parked(length);
}

PH__WEAK ph_code ph_host_info(ph_info *info) {
  const ph_value *value;
  PH__TRY(ph__parked_json(ph__host_host_info(), &value));
  *info = (ph_info){ph__int_at(value, "abi"), ph_get(value, PH__T("limits")), ph_get(value, PH__T("features"))};
  return PH_OK;
}

/* ----- key-value store ----- */

PH__WEAK ph_code ph_kv_get(ph_text key, ph_text *value) {
  *value = ph__no_text();
  return ph__parked_text(ph__host_kv_get(PH__PASS(key)), value);
}

PH__WEAK ph_code ph_kv_get_many(const ph_text *keys, size_t count, ph_text *values) {
  ph_value *list = ph__value(PH_ARRAY);
  for (size_t k = 0; k < count; k++) ph_append(list, ph_string(keys[k]));
  const ph_text written = ph_json_text(list);
  const ph_value *found;
  PH__TRY(ph__parked_json(ph__host_kv_get_many(PH__PASS(written)), &found));
  for (size_t k = 0; k < count; k++)
    if (!ph_as_bytes(ph_get(found, keys[k]), &values[k])) values[k] = ph__no_text();
  return PH_OK;
}

PH__WEAK ph_code ph_kv_set(ph_text key, ph_text value, int32_t ttl_seconds) {
  return ph__checked(ph__host_kv_set(PH__PASS(key), PH__PASS(value), ttl_seconds));
}

/* What became of a conditional write, by the result of the host. */
static ph_code ph__updated(int32_t code, ph_kv_update *update) {
  if (code < 0) return ph__refused(code);
  *update = (ph_kv_update){code == 1, ph__no_text()};
  /* One byte says whether there is a value: an empty one is not an absent one. */
  if (code == 0 && ph__parked(1).data[0] == 1) update->present = ph__parked_body();
  return PH_OK;
}

PH__WEAK ph_code ph_kv_set_if_absent(ph_text key, ph_text value, int32_t ttl_seconds, ph_kv_update *update) {
  return ph__updated(ph__host_kv_update(PH__PASS(key), 0, "", 0, PH__PASS(value), ttl_seconds), update);
}

PH__WEAK ph_code ph_kv_compare_and_set(ph_text key, ph_text expected, ph_text value, int32_t ttl_seconds,
                                       ph_kv_update *update) {
  return ph__updated(ph__host_kv_update(PH__PASS(key), 1, PH__PASS(expected), PH__PASS(value), ttl_seconds), update);
}

PH__WEAK ph_code ph_kv_increment(ph_text key, int64_t delta, int32_t ttl_seconds, int64_t *sum) {
  ph_text text;
  PH__TRY(ph__parked_text(ph__host_kv_increment(PH__PASS(key), delta, ttl_seconds), &text));
  if (sum) ph_to_int(text, sum);
  return PH_OK;
}

PH__WEAK ph_code ph_kv_delete(ph_text key, bool *removed) {
  const int32_t code = ph__host_kv_delete(PH__PASS(key));
  if (removed) *removed = code == 1;
  return ph__checked(code);
}

PH__WEAK ph_code ph_kv_list(ph_text prefix, ph_text after, int32_t limit, ph_keys *page) {
  const ph_value *value;
  PH__TRY(ph__parked_json(ph__host_kv_list(PH__PASS(prefix), PH__PASS(after), limit), &value));
  const ph_value *list = ph_get(value, PH__T("keys"));
  ph_text *keys = (ph_text *)ph_alloc(ph_count(list) * sizeof *keys);
  for (size_t k = 0; k < ph_count(list); k++) keys[k] = ph_as_text(ph_item(list, k));
  *page = (ph_keys){keys, ph_count(list), ph__text_at(value, "next")};
  return PH_OK;
}

/* ----- databases ----- */

static ph_code ph__sql_handle(int32_t handle, ph_sql *at) {
  at->handle = handle;
  return ph__checked(handle);
}

PH__WEAK ph_code ph_sql_open(ph_text name, ph_sql *connection) {
  return ph__sql_handle(ph__host_sql_open(PH__PASS(name)), connection);
}

PH__WEAK ph_code ph_sql_begin(ph_sql connection, ph_sql *transaction) {
  return ph__sql_handle(ph__host_sql_begin(connection.handle), transaction);
}

PH__WEAK ph_code ph_sql_commit(ph_sql transaction) { return ph__checked(ph__host_sql_commit(transaction.handle)); }

PH__WEAK ph_code ph_sql_rollback(ph_sql transaction) { return ph__checked(ph__host_sql_rollback(transaction.handle)); }

PH__WEAK ph_code ph_sql_close(ph_sql at) { return ph__checked(ph__host_sql_close(at.handle)); }

/* Takes the rows of an answer; a cursor is 0 when no more are left. */
static ph_code ph__sql_page(ph_rows *rows, int32_t length, const ph_value **answer) {
  rows->ph__page = NULL;
  rows->ph__cursor = 0;
  rows->row = NULL;
  rows->ph__at = 0;
  rows->code = ph__parked_json(length, answer);
  if (rows->code != PH_OK) return rows->code;
  rows->ph__page = ph_get(*answer, PH__T("rows"));
  rows->ph__cursor = (int32_t)ph__int_at(*answer, "cursor");
  return PH_OK;
}

PH__WEAK ph_code ph_sql_query(ph_sql at, ph_text statement, const ph_value *values, ph_rows *rows) {
  const ph_text list = ph__sql_values(values);
  const ph_value *answer;
  *rows = (ph_rows){0};
  PH__TRY(ph__sql_page(rows, ph__host_sql_query(at.handle, PH__PASS(statement), PH__PASS(list), 0), &answer));
  rows->columns = ph_get(answer, PH__T("columns"));
  return PH_OK;
}

PH__WEAK ph_code ph_sql_exec(ph_sql at, ph_text statement, const ph_value *values, int64_t *changed) {
  const ph_text list = ph__sql_values(values);
  const ph_value *answer;
  PH__TRY(ph__parked_json(ph__host_sql_exec(at.handle, PH__PASS(statement), PH__PASS(list)), &answer));
  if (changed) *changed = ph__int_at(answer, "rows_affected");
  return PH_OK;
}

PH__WEAK bool ph_sql_next(ph_rows *rows) {
  const ph_value *answer;
  while (rows->code == PH_OK && rows->ph__at >= ph_count(rows->ph__page) && rows->ph__cursor != 0)
    if (ph__sql_page(rows, ph__host_sql_fetch(rows->ph__cursor, 0), &answer) != PH_OK) return false;
  rows->row = ph_item(rows->ph__page, rows->ph__at++);
  return rows->row != NULL;
}

PH__WEAK ph_code ph_rows_close(ph_rows *rows) {
  const int32_t cursor = rows->ph__cursor;
  rows->ph__page = NULL;
  rows->ph__cursor = 0;
  return cursor == 0 ? PH_OK : ph__checked(ph__host_sql_close(cursor));
}

PH__WEAK const ph_value *ph_sql_value(const ph_rows *rows, size_t column) { return ph_item(rows->row, column); }

PH__WEAK ph_text ph_sql_text(const ph_rows *rows, size_t column) { return ph_as_text(ph_item(rows->row, column)); }

PH__WEAK int64_t ph_sql_int(const ph_rows *rows, size_t column) {
  const ph_value *value = ph_item(rows->row, column);
  int64_t number = 0;
  /* The digits of a numeric, which sum(bigint) is, come as a string. */
  if (ph_kind_of(value) == PH_STRING) ph_to_int(value->text, &number);
  else ph_as_int(value, &number);
  return number;
}

PH__WEAK ph_value *ph_sql_object(const ph_rows *rows) {
  ph_value *object = ph__value(PH_OBJECT);
  for (size_t k = 0; k < ph_count(rows->row); k++)
    ph_set(object, ph__text_at(ph_item(rows->columns, k), "name"), ph_item(rows->row, k));
  return object;
}

/* ----- other hosts ----- */

PH__WEAK ph_code ph_http_request(const ph_http_order *order, ph_http_answer *answer) {
  ph_value *wire = ph_set(ph__value(PH_OBJECT), PH__T("url"), ph_string(order->url));
  if (!ph_is_absent(order->method)) ph_set(wire, PH__T("method"), ph_string(order->method));
  if (order->headers) ph_set(wire, PH__T("headers"), order->headers);
  if (order->timeout_ms > 0) ph_set(wire, PH__T("timeout_ms"), ph_int(order->timeout_ms));
  const ph_text written = ph_json_text(wire);
  const ph_value *value;
  PH__TRY(ph__parked_json(ph__host_http_request(PH__PASS(written), PH__PASS(order->body)), &value));
  *answer = (ph_http_answer){
    .status = (int)ph__int_at(value, "status"),
    .headers = ph_get(value, PH__T("headers")),
    .url = ph__text_at(value, "url"),
    .body = ph__parked_body(),
  };
  return PH_OK;
}

PH__WEAK ph_code ph_http_get(ph_text url, ph_http_answer *answer) {
  return ph_http_request(&(ph_http_order){.url = url}, answer);
}

PH__WEAK ph_code ph_http_post(ph_text url, ph_text content_type, ph_text body, ph_http_answer *answer) {
  const ph_value *headers = ph_set(ph__value(PH_OBJECT), PH__T("Content-Type"), ph_string(content_type));
  return ph_http_request(
    &(ph_http_order){.method = PH__T("POST"), .url = url, .headers = headers, .body = body}, answer);
}

PH__WEAK ph_text ph_answer_header(const ph_http_answer *answer, ph_text name) {
  return ph__header(answer->headers, name);
}

/* ----- files ----- */

/* The memory of an execution holds several copies of a file that is read whole. */
enum { PH__PART_MAX = 1 << 20, PH__WHOLE_MAX = 64 << 20, PH__FILE_END = 1 << 30 };

static ph_code ph__parked_file(int32_t length, ph_file *file) {
  const ph_value *value;
  PH__TRY(ph__parked_json(length, &value));
  *file = ph__file(value);
  return PH_OK;
}

PH__WEAK ph_code ph_file_meta(ph_text id, ph_file *file) {
  return ph__parked_file(ph__host_file_meta(PH__PASS(id)), file);
}

PH__WEAK ph_code ph_file_read_into(ph_text id, int64_t offset, void *to, size_t size, size_t *read, bool *is_end) {
  const int32_t code =
    ph__host_file_read_into(PH__PASS(id), offset, to, size < PH__PART_MAX ? size : PH__PART_MAX);
  if (code < 0) return ph__refused(code);
  *read = (size_t)(code & ~PH__FILE_END);
  *is_end = (code & PH__FILE_END) != 0;
  return PH_OK;
}

PH__WEAK ph_code ph_file_read(ph_text id, int64_t offset, size_t most, ph_text *part, bool *is_end) {
  const size_t room = most == 0 || most > PH__PART_MAX ? PH__PART_MAX : most;
  char *data = ph__room(room);
  size_t read;
  PH__TRY(ph_file_read_into(id, offset, data, room, &read, is_end));
  *part = ph__ended(data, read);
  return PH_OK;
}

PH__WEAK ph_code ph_file_read_all(ph_text id, ph_text *content) {
  ph_file file;
  PH__TRY(ph_file_meta(id, &file));
  if (file.size > PH__WHOLE_MAX)
    return ph__note(PH_TOO_LARGE, ph_format("the file has %lld bytes, more than 64 MiB: read it in parts with ph_file_read",
                                            (long long)file.size));
  char *data = ph__room((size_t)file.size);
  size_t at = 0;
  for (bool is_end = false; !is_end && at < (size_t)file.size;) {
    size_t read;
    PH__TRY(ph_file_read_into(id, (int64_t)at, data + at, (size_t)file.size - at, &read, &is_end));
    if (read == 0) break;
    at += read;
  }
  *content = ph__ended(data, at);
  return PH_OK;
}

PH__WEAK ph_value *ph_file_value(const ph_file *file) {
  return ph_object(
    {"id", ph_string(file->id)},
    {"name", ph_string(file->name)},
    {"mime_type", ph_string(file->mime_type)},
    {"size", ph_int(file->size)},
    {"file_type", ph_string(file->file_type)});
}

PH__WEAK ph_code ph_file_url(ph_text id, ph_text *url) { return ph__parked_text(ph__host_file_url(PH__PASS(id)), url); }

PH__WEAK ph_code ph_file_store_with_ttl(ph_text name, ph_text mime_type, ph_text file_type, ph_text content,
                                        int64_t ttl_ms, ph_file *file) {
  ph_value *order = ph_set(ph__value(PH_OBJECT), PH__T("name"), ph_string(name));
  ph_set(order, PH__T("mime_type"), ph_string(mime_type));
  ph_set(order, PH__T("file_type"), ph_string(file_type));
  if (ttl_ms != 0) ph_set(order, PH__T("ttl_ms"), ph_int(ttl_ms));
  const ph_text written = ph_json_text(order);
  return ph__parked_file(ph__host_file_store(PH__PASS(written), PH__PASS(content)), file);
}

PH__WEAK ph_code ph_file_store(ph_text name, ph_text mime_type, ph_text file_type, ph_text content, ph_file *file) {
  return ph_file_store_with_ttl(name, mime_type, file_type, content, 0, file);
}

/* ----- messages and events ----- */

struct ph_message {
  ph_value *value;
  ph_value *files;
};

PH__WEAK ph_message *ph_new_message(ph_text text) {
  ph_message *message = (ph_message *)ph_alloc(sizeof *message);
  message->value = ph_set(ph__value(PH_OBJECT), PH__T("text"), ph_string(ph_or(text, PH__T(""))));
  return message;
}

PH__WEAK ph_message *ph_message_file(ph_message *message, const ph_file *file, ph_text caption) {
  ph_value *attachment = ph_set(ph__value(PH_OBJECT), PH__T("file"), ph_file_value(file));
  if (caption.length > 0) ph_set(attachment, PH__T("caption"), ph_string(caption));
  if (!message->files) {
    message->files = ph__value(PH_ARRAY);
    ph_set(message->value, PH__T("files"), message->files);
  }
  ph_append(message->files, attachment);
  return message;
}

PH__WEAK ph_code ph_reply(const ph_message *message) {
  const ph_text written = ph_json_text(message->value);
  return ph__checked(ph__host_reply(PH__PASS(written)));
}

PH__WEAK ph_code ph_notify_user(int64_t user_id, const ph_message *message) {
  const ph_text written = ph_json_text(message->value);
  return ph__checked(ph__host_notify_user(user_id, PH__PASS(written)));
}

PH__WEAK ph_code ph_notify_chat(ph_text chat_id, const ph_message *message) {
  const ph_text written = ph_json_text(message->value);
  return ph__checked(ph__host_notify_chat(PH__PASS(chat_id), PH__PASS(written)));
}

static ph_text ph__students(const ph_students *f) {
  ph_value *filter = ph__value(PH_OBJECT);
  if (f->all) ph_set(filter, PH__T("all"), ph_bool(true));
  const ph__named parts[] = {
    {PH__T("streams"), f->streams},
    {PH__T("groups"), f->groups},
    {PH__T("subgroups"), f->subgroups},
    {PH__T("nationality_type"), f->nationality_type},
    {PH__T("funding_type"), f->funding_type},
    {PH__T("education_form"), f->education_form},
    {PH__T("locale"), f->locale},
    {PH__T("primary_channel"), f->primary_channel},
  };
  for (size_t k = 0; k < PH__COUNT(parts); k++)
    if (parts[k].value) ph_set(filter, parts[k].name, parts[k].value);
  return ph_json_text(filter);
}

PH__WEAK ph_code ph_notify_students(const ph_students *filter, const ph_message *message, ph_queued *queued) {
  const ph_text selected = ph__students(filter);
  const ph_text written = ph_json_text(message->value);
  const ph_value *value;
  PH__TRY(ph__parked_json(ph__host_notify_students(PH__PASS(selected), PH__PASS(written)), &value));
  if (queued) *queued = (ph_queued){ph__int_at(value, "queued"), ph__int_at(value, "unreachable")};
  return PH_OK;
}

PH__WEAK ph_code ph_publish_event(ph_text name, const ph_value *payload) {
  const ph_text written = ph_json_text(payload);
  return ph__checked(ph__host_event_publish(PH__PASS(name), PH__PASS(written)));
}

/* ----- other plugins ----- */

PH__WEAK ph_code ph_call_plugin_raw(ph_text target, ph_text function, ph_text bytes, ph_text *answer) {
  return ph__parked_text(ph__host_plugin_call(PH__PASS(target), PH__PASS(function), PH__PASS(bytes)), answer);
}

PH__WEAK ph_code ph_call_plugin(ph_text target, ph_text function, const ph_value *value, const ph_value **answer) {
  ph_text text;
  PH__TRY(ph_call_plugin_raw(target, function, ph_json_text(value), &text));
  /* A function may give no answer. */
  if (text.length == 0) {
    *answer = ph_null();
    return PH_OK;
  }
  return ph__parse((char *)text.data, text.length, answer);
}

PH__WEAK ph_code ph_call_plugin_into(
  ph_text target, ph_text function, const ph_value *value, void *buffer, size_t size, size_t *length) {
  const ph_text bytes = ph_json_text(value);
  const int32_t answered = ph__host_plugin_call(PH__PASS(target), PH__PASS(function), PH__PASS(bytes));
  if (answered < 0) return ph__refused(answered);
  if ((size_t)answered > size) {
    const ph_text has = ph_concat(PH__T("the answer has "), ph__decimal(answered));
    const ph_text room = ph_concat(PH__T(" bytes, the buffer "), ph__decimal((int64_t)size));
    return ph__note(PH_TOO_LARGE, ph_concat(has, room));
  }
  *length = (size_t)answered;
  if (answered > 0) ph__host_result_read(buffer, (size_t)answered);
  return PH_OK;
}

/* ----- the manifest ----- */

static ph_value *ph__config_fields(const ph_config_field *field) {
  ph_value *list = ph__value(PH_ARRAY);
  for (; field->name; field++)
    ph_append(list, ph_object(
      {"type", ph_string(PH__T("string"))},
      {"name", ph_string(ph__text_of(field->name))},
      {"description", ph_string(ph__text_of(field->description))},
      {"required", ph_bool(field->required)},
      {"sensitive", ph_bool(field->sensitive)}));
  return list;
}

static ph_value *ph__requirements(const ph_requirement *requirement) {
  ph_value *list = ph__value(PH_ARRAY);
  for (; requirement && requirement->kind; requirement++) {
    ph_value *one = ph_object(
      {"kind", ph_string(ph__text_of(requirement->kind))},
      {"description", ph_string(ph__text_of(requirement->description))});
    if (strcmp(requirement->kind, "sql") == 0)
      ph_set(one, PH__T("name"), ph_string(ph__text_of(requirement->name ? requirement->name : "default")));
    if (requirement->target) ph_set(one, PH__T("target"), ph_string(ph__text_of(requirement->target)));
    if (requirement->config) ph_set(one, PH__T("config"), ph__config_fields(requirement->config));
    ph_append(list, one);
  }
  return list;
}

static ph_value *ph__access(const ph_access *access) {
  return ph_object(
    {"public", ph_bool(access->is_public)},
    {"users", ph_bool(access->users)},
    {"service_keys", ph_bool(access->service_keys)},
    {"policy", ph_string(ph__text_of(access->policy ? access->policy : ""))},
    {"reason", ph_string(ph__text_of(access->reason ? access->reason : ""))});
}

/* Whether there is a trigger: a list ends with one that has nothing, and one may lack its name. */
static bool ph__is_trigger(const ph_trigger *t) {
  return t && (t->name || t->handler || t->path || t->methods[0] || t->access || t->description);
}

static bool ph__is_function(const ph_function *f) {
  return f && (f->name || f->handler);
}

static ph_value *ph__triggers(const ph_trigger *trigger) {
  ph_value *list = ph__value(PH_ARRAY);
  for (; ph__is_trigger(trigger); trigger++) {
    const bool is_http = trigger->type == PH_TRIGGER_HTTP;
    ph_value *one = ph_object(
      {"name", ph_string(ph__text_of(trigger->name))},
      {"type", ph_string(is_http ? PH__T("http") : PH__T("messenger"))});
    if (trigger->description) ph_set(one, PH__T("description"), ph_string(ph__text_of(trigger->description)));
    ph_append(list, one);
    /* The host warns of what a command has no use for. */
    if (trigger->access) ph_set(one, PH__T("access"), ph__access(trigger->access));
    if (!is_http && !trigger->path && !trigger->methods[0]) continue;
    ph_value *methods = ph__value(PH_ARRAY);
    for (size_t k = 0; k < PH__COUNT(trigger->methods) && trigger->methods[k]; k++)
      ph_append(methods, ph_string(ph__text_of(trigger->methods[k])));
    ph_set(one, PH__T("path"), ph_string(ph__text_of(trigger->path ? trigger->path : "")));
    ph_set(one, PH__T("methods"), methods);
  }
  return list;
}

/* What the checks of the compiler call (-fsanitize-minimal-runtime). The trap has the line of the author. */
PH__WEAK void __ubsan_handle_type_mismatch_minimal_abort(void) {
  ph__stop(PH__T("a pointer is NULL where it is used (the address of a member, &p->m, is a use)"));
}

PH__WEAK void __ubsan_handle_out_of_bounds_minimal_abort(void) {
  ph__stop(PH__T("an index is outside its array"));
}

/* What is left out of a declaration, which the compiler does not see; absent when all is well. */
static ph_text ph__left_out(void) {
  for (const ph_trigger *t = plugin.triggers; ph__is_trigger(t); t++) {
    const ph_text number = ph_concat(PH__T("trigger "), ph__decimal(t - plugin.triggers + 1));
    if (!t->name) return ph_concat(number, PH__T(" of the list has no .name"));
    const ph_text trigger = ph_concat(PH__T("the trigger "), ph__text_of(t->name));
    if (!t->handler) return ph_concat(trigger, PH__T(" has no .handler"));
    if (t->type == PH_TRIGGER_HTTP && !t->path) return ph_concat(
      trigger, PH__T(" has no .path, like \"/profile\" (\"\" for the root); a command needs .type = PH_TRIGGER_MESSENGER"));
  }
  for (const ph_function *f = plugin.functions; ph__is_function(f); f++) {
    if (!f->name) return ph_concat(
      ph_concat(PH__T("function "), ph__decimal(f - plugin.functions + 1)), PH__T(" of the list has no .name"));
    if (!f->handler) return ph_concat(ph_concat(PH__T("the function "), ph__text_of(f->name)), PH__T(" has no .handler"));
  }
  return (ph_text){0};
}

__attribute__((export_name("plugin_describe"))) PH__WEAK int32_t ph__describe(void) {
  const ph_text left_out = ph__left_out();
  if (!ph_is_absent(left_out)) return ph__host_fail(PH__PASS(left_out));
  const ph_text manifest = ph_json_text(ph_object(
    {"abi", ph_int(PH_ABI)},
    {"id", ph_string(ph__text_of(plugin.id))},
    {"name", ph_string(ph__text_of(plugin.name))},
    {"version", ph_string(ph__text_of(plugin.version))},
    {"requirements", ph__requirements(plugin.requirements)},
    {"triggers", ph__triggers(plugin.triggers)}));
  return ph__host_output(PH__PASS(manifest));
}

/* ----- one execution ----- */

static ph_handler ph__handler_of(const ph_context *ctx) {
  if (ctx->call) {
    for (const ph_function *f = plugin.functions; ph__is_function(f); f++)
      if (ph_equal(ph__text_of(f->name), ctx->call->function)) return f->handler;
    return NULL;
  }
  for (const ph_trigger *t = plugin.triggers; ph__is_trigger(t); t++)
    if (ph_equal(ph__text_of(t->name), ctx->trigger)) return t->handler;
  return NULL;
}

static ph_code ph__handle_event(void) {
  const ph_text text = ph__input(0);
  const ph_value *event;
  const ph_code parsed = ph__parse((char *)text.data, text.length, &event);
  if (parsed != PH_OK) return parsed;
  const ph_context ctx = ph__context(event);
  const ph_handler handler = ph__handler_of(&ctx);
  if (handler) return handler(&ctx);
  const ph_text name = ctx.call ? ctx.call->function : ctx.trigger;
  const ph_text what = ctx.call ? PH__T("function") : PH__T("trigger");
  const ph_text reason = ph_concat(ph_concat(PH__T("the plugin has no "), what), PH__T(" \""));
  return ph_fail(ph_concat(ph_concat(reason, name), PH__T("\"")));
}

__attribute__((export_name("plugin_handle"))) PH__WEAK int32_t ph__handle(void) {
  const ph_code code = ph__handle_event();
  fflush(NULL);
  if (code == PH_OK) return 0;
  if (ph__error.code != code) {
    ph__called_at = NULL;
    ph__note(code, ph__returned(code));
  }
  const bool has_trace = !ph_is_absent(ph__error.trace);
  const ph_text failure =
    has_trace ? ph_concat(ph_concat(ph__error.text, PH__T("\n")), ph__error.trace) : ph__error.text;
  ph__host_fail(PH__PASS(failure));
  return PH_INTERNAL;
}

#endif

/* ---------- the names again: they take any kind of text, and note the place of a call that may fail ---------- */

#define ph_is_absent(text) ph_is_absent(PH_TEXT(text))
#define ph_or(text, fallback) ph_or(PH_TEXT(text), PH_TEXT(fallback))
#define ph_equal(a, b) ph_equal(PH_TEXT(a), PH_TEXT(b))
#define ph_starts_with(text, prefix) ph_starts_with(PH_TEXT(text), PH_TEXT(prefix))
#define ph_strip_prefix(text, prefix) ph_strip_prefix(PH_TEXT(text), PH_TEXT(prefix))
#define ph_trim(text) ph_trim(PH_TEXT(text))
#define ph_split(rest, separator, part) ph_split(rest, PH_TEXT(separator), part)
#define ph_concat(a, b) ph_concat(PH_TEXT(a), PH_TEXT(b))
#define ph_to_int(text, number) ph_to_int(PH_TEXT(text), number)
#define ph_url_encode(text) ph_url_encode(PH_TEXT(text))
#define ph_base64_encode(bytes) ph_base64_encode(PH_TEXT(bytes))
#define ph_base64_decode(text, bytes) ph_base64_decode(PH_TEXT(text), bytes)
#define ph_fail(reason) PH__CALL(ph_fail(PH_TEXT(reason)))
#define ph_panic(reason) ph_panic(PH_TEXT(reason))
#define ph_json_parse(text, value) PH__CALL(ph_json_parse(PH_TEXT(text), value))
#define ph_get(value, name) ph_get(value, PH_TEXT(name))
#define ph_get_string(value, name) ph_get_string(value, PH_TEXT(name))
#define ph_number(digits) ph_number(PH_TEXT(digits))
#define ph_string(text) ph_string(PH_TEXT(text))
#define ph_bytes_value(bytes) ph_bytes_value(PH_TEXT(bytes))
#define ph_set(object, name, value) ph_set(object, PH_TEXT(name), value)
#define ph_query(ctx, name) ph_query(ctx, PH_TEXT(name))
#define ph_header(ctx, name) ph_header(ctx, PH_TEXT(name))
#define ph_param(ctx, name) ph_param(ctx, PH_TEXT(name))
#define ph_body_json(ctx, value) PH__CALL(ph_body_json(ctx, value))
#define ph_json(status, value) PH__CALL(ph_json(status, value))
#define ph_json_error(status, reason) PH__CALL(ph_json_error(status, PH_TEXT(reason)))
#define ph_respond(status, headers, body) PH__CALL(ph_respond(status, headers, PH_TEXT(body)))
#define ph_output(value) PH__CALL(ph_output(value))
#define ph_output_bytes(bytes) PH__CALL(ph_output_bytes(PH_TEXT(bytes)))
#define ph_log(line) ph_log(PH_TEXT(line))
#define ph_log_error(line) ph_log_error(PH_TEXT(line))
#define ph_config(name) ph_config(PH_TEXT(name))
#define ph_host_info(info) PH__CALL(ph_host_info(info))
#define ph_kv_get(key, value) PH__CALL(ph_kv_get(PH_TEXT(key), value))
#define ph_kv_get_many(keys, count, values) PH__CALL(ph_kv_get_many(keys, count, values))
#define ph_kv_set(key, value, ttl_seconds) PH__CALL(ph_kv_set(PH_TEXT(key), PH_TEXT(value), ttl_seconds))
#define ph_kv_set_if_absent(key, value, ttl_seconds, update) \
  PH__CALL(ph_kv_set_if_absent(PH_TEXT(key), PH_TEXT(value), ttl_seconds, update))
#define ph_kv_compare_and_set(key, expected, value, ttl_seconds, update) \
  PH__CALL(ph_kv_compare_and_set(PH_TEXT(key), PH_TEXT(expected), PH_TEXT(value), ttl_seconds, update))
#define ph_kv_increment(key, delta, ttl_seconds, sum) PH__CALL(ph_kv_increment(PH_TEXT(key), delta, ttl_seconds, sum))
#define ph_kv_delete(key, removed) PH__CALL(ph_kv_delete(PH_TEXT(key), removed))
#define ph_kv_list(prefix, after, limit, page) PH__CALL(ph_kv_list(PH_TEXT(prefix), PH_TEXT(after), limit, page))
#define ph_sql_open(name, connection) PH__CALL(ph_sql_open(PH_TEXT(name), connection))
#define ph_sql_query(at, statement, values, rows) PH__CALL(ph_sql_query(at, PH_TEXT(statement), values, rows))
#define ph_sql_exec(at, statement, values, changed) PH__CALL(ph_sql_exec(at, PH_TEXT(statement), values, changed))
#define ph_sql_next(rows) PH__CALL(ph_sql_next(rows))
#define ph_sql_begin(connection, transaction) PH__CALL(ph_sql_begin(connection, transaction))
#define ph_sql_commit(transaction) PH__CALL(ph_sql_commit(transaction))
#define ph_sql_rollback(transaction) PH__CALL(ph_sql_rollback(transaction))
#define ph_sql_close(at) PH__CALL(ph_sql_close(at))
#define ph_rows_close(rows) PH__CALL(ph_rows_close(rows))
#define ph_http_request(order, answer) PH__CALL(ph_http_request(order, answer))
#define ph_http_get(url, answer) PH__CALL(ph_http_get(PH_TEXT(url), answer))
#define ph_http_post(url, content_type, body, answer) \
  PH__CALL(ph_http_post(PH_TEXT(url), PH_TEXT(content_type), PH_TEXT(body), answer))
#define ph_answer_header(answer, name) ph_answer_header(answer, PH_TEXT(name))
#define ph_file_meta(id, file) PH__CALL(ph_file_meta(PH_TEXT(id), file))
#define ph_file_read(id, offset, most, part, is_end) PH__CALL(ph_file_read(PH_TEXT(id), offset, most, part, is_end))
#define ph_file_read_into(id, offset, to, size, read, is_end) \
  PH__CALL(ph_file_read_into(PH_TEXT(id), offset, to, size, read, is_end))
#define ph_file_read_all(id, content) PH__CALL(ph_file_read_all(PH_TEXT(id), content))
#define ph_file_url(id, url) PH__CALL(ph_file_url(PH_TEXT(id), url))
#define ph_file_store(name, mime_type, file_type, content, file) \
  PH__CALL(ph_file_store(PH_TEXT(name), PH_TEXT(mime_type), PH_TEXT(file_type), PH_TEXT(content), file))
#define ph_file_store_with_ttl(name, mime_type, file_type, content, ttl_ms, file) \
  PH__CALL( \
    ph_file_store_with_ttl(PH_TEXT(name), PH_TEXT(mime_type), PH_TEXT(file_type), PH_TEXT(content), ttl_ms, file))
#define ph_new_message(text) ph_new_message(PH_TEXT(text))
#define ph_message_file(message, file, caption) ph_message_file(message, file, PH_TEXT(caption))
#define ph_reply(message) PH__CALL(ph_reply(message))
#define ph_notify_user(user_id, message) PH__CALL(ph_notify_user(user_id, message))
#define ph_notify_chat(chat_id, message) PH__CALL(ph_notify_chat(PH_TEXT(chat_id), message))
#define ph_notify_students(filter, message, queued) PH__CALL(ph_notify_students(filter, message, queued))
#define ph_publish_event(name, payload) PH__CALL(ph_publish_event(PH_TEXT(name), payload))
#define ph_call_plugin(target, function, value, answer) \
  PH__CALL(ph_call_plugin(PH_TEXT(target), PH_TEXT(function), value, answer))
#define ph_call_plugin_into(target, function, value, buffer, size, length) \
  PH__CALL(ph_call_plugin_into(PH_TEXT(target), PH_TEXT(function), value, buffer, size, length))
#define ph_call_plugin_raw(target, function, bytes, answer) \
  PH__CALL(ph_call_plugin_raw(PH_TEXT(target), PH_TEXT(function), PH_TEXT(bytes), answer))

#endif
