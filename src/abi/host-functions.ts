/**
 * The function table of the plugin interface (docs/abi.md "Host functions"), one row each. The gate checks imports
 * against it, the sandbox builds its imports from it, and the host dispatches by it. There is no second list.
 */

/** Protocol versions this host speaks (docs/abi.md "Manifest"). */
export const ABI_NEWEST = 5;
/** A module whose manifest names no `abi` counts as this one. */
export const ABI_UNSTATED = 3;

/**
 * How one parameter is passed. `text`, `json`, `bytes`, `buf` are (pointer, length) pairs; `buf` is written by the
 * host.
 */
export type Parameter = 'i32' | 'i64' | 'text' | 'json' | 'bytes' | 'buf';

/** The permission a function needs; the handlers of `sql` and `plugins:call` also check a name. */
export type PermissionKey = 'sql' | 'kv' | 'network' | 'notify' | 'events' | 'plugins:call' | 'file';

export type HostFunction = {
  name: string;
  parameters: readonly Parameter[];
  since: number;
  permission: PermissionKey | null;
  /** Answered inside the sandbox thread, without asking the host. */
  local: boolean;
  /** Only reads, for one text: the host may do it before the handler runs (docs/RATIONALE.md "Reads come first"). */
  mayComeFirst: boolean;
};

/** Functions that change nothing and have one argument. */
const MAY_COME_FIRST: ReadonlySet<string> = new Set(['kv_get', 'kv_get_many']);

const local = (name: string, parameters: readonly Parameter[], since = 1): HostFunction => ({
  name,
  parameters,
  since,
  permission: null,
  local: true,
  mayComeFirst: false,
});
const remote = (
  name: string,
  parameters: readonly Parameter[],
  permission: PermissionKey | null,
  since: number,
): HostFunction => ({ name, parameters, since, permission, local: false, mayComeFirst: MAY_COME_FIRST.has(name) });

export const HOST_FUNCTIONS: readonly HostFunction[] = [
  local('input_len', ['i32']),
  local('input_read', ['i32', 'buf']),
  local('result_read', ['buf']),
  local('body_len', []),
  local('body_read', ['i32', 'buf']),
  local('error_len', []),
  local('error_read', ['buf']),
  local('output', ['bytes']),
  local('respond', ['i32', 'json', 'bytes']),
  remote('reply', ['json'], null, 1),
  local('fail', ['text']),
  local('log', ['i32', 'text']),
  local('config_get', ['text']),
  remote('kv_get', ['text'], 'kv', 1),
  remote('kv_set', ['text', 'bytes', 'i32'], 'kv', 1),
  remote('kv_delete', ['text'], 'kv', 1),
  remote('kv_list', ['text', 'text', 'i32'], 'kv', 1),
  remote('sql_open', ['text'], 'sql', 1),
  remote('sql_query', ['i32', 'text', 'json', 'i32'], 'sql', 1),
  remote('sql_fetch', ['i32', 'i32'], 'sql', 1),
  remote('sql_exec', ['i32', 'text', 'json'], 'sql', 1),
  remote('sql_begin', ['i32'], 'sql', 1),
  remote('sql_commit', ['i32'], 'sql', 1),
  remote('sql_rollback', ['i32'], 'sql', 1),
  remote('sql_close', ['i32'], 'sql', 1),
  remote('http_request', ['json', 'bytes'], 'network', 1),
  remote('notify_user', ['i64', 'json'], 'notify', 1),
  remote('notify_chat', ['text', 'json'], 'notify', 1),
  remote('notify_students', ['json', 'json'], 'notify', 1),
  remote('file_meta', ['text'], 'file', 2),
  remote('file_url', ['text'], 'file', 2),
  remote('file_store', ['json', 'bytes'], 'file', 2),
  remote('file_read', ['text', 'i64', 'i32'], 'file', 2),
  remote('event_publish', ['text', 'json'], 'events', 3),
  remote('plugin_call', ['text', 'text', 'bytes'], 'plugins:call', 3),
  remote('file_read_into', ['text', 'i64', 'buf'], 'file', 4),
  local('host_info', [], 4),
  remote('kv_get_many', ['json'], 'kv', 5),
  remote('kv_update', ['text', 'i32', 'bytes', 'bytes', 'i32'], 'kv', 5),
  remote('kv_increment', ['text', 'i64', 'i32'], 'kv', 5),
];

export const HOST_FUNCTION_BY_NAME: ReadonlyMap<string, HostFunction> = new Map(HOST_FUNCTIONS.map(f => [f.name, f]));

/** Results a host function may return below zero (docs/abi.md "Host functions"). */
export const HOST_ERROR = {
  denied: -1,
  notFound: -2,
  invalid: -3,
  tooLarge: -4,
  unavailable: -5,
  deadline: -6,
  internal: -7,
  conflict: -8,
} as const;

export type HostErrorCode = (typeof HOST_ERROR)[keyof typeof HOST_ERROR];

/** Text behind `error_read` when a handler gives none; for -1 the text is fixed by docs/plugins.md "Requirements". */
export const HOST_ERROR_TEXT: Record<HostErrorCode, string> = {
  [-1]: 'permission denied',
  [-2]: 'not found',
  [-3]: 'invalid argument',
  [-4]: 'too large',
  [-5]: 'unavailable',
  [-6]: 'deadline passed',
  [-7]: 'internal error',
  [-8]: 'conflict',
};

/** The WebAssembly value types of a row's parameters, in the order the guest passes them. */
export function wasmParametersOf(row: HostFunction): Array<'i32' | 'i64'> {
  return row.parameters.flatMap(
    (p): Array<'i32' | 'i64'> => (p === 'i32' ? ['i32'] : p === 'i64' ? ['i64'] : ['i32', 'i32']),
  );
}

/** WASI preview1 functions with their parameter types (`i` = i32, `I` = i64); all but `proc_exit` return i32. */
export const WASI_SIGNATURES: Readonly<Record<string, string>> = {
  args_get: 'ii',
  args_sizes_get: 'ii',
  environ_get: 'ii',
  environ_sizes_get: 'ii',
  clock_res_get: 'ii',
  clock_time_get: 'iIi',
  fd_advise: 'iIIi',
  fd_allocate: 'iII',
  fd_close: 'i',
  fd_datasync: 'i',
  fd_fdstat_get: 'ii',
  fd_fdstat_set_flags: 'ii',
  fd_fdstat_set_rights: 'iII',
  fd_filestat_get: 'ii',
  fd_filestat_set_size: 'iI',
  fd_filestat_set_times: 'iIIi',
  fd_pread: 'iiiIi',
  fd_prestat_get: 'ii',
  fd_prestat_dir_name: 'iii',
  fd_pwrite: 'iiiIi',
  fd_read: 'iiii',
  fd_readdir: 'iiiIi',
  fd_renumber: 'ii',
  fd_seek: 'iIii',
  fd_sync: 'i',
  fd_tell: 'ii',
  fd_write: 'iiii',
  path_create_directory: 'iii',
  path_filestat_get: 'iiiii',
  path_filestat_set_times: 'iiiiIIi',
  path_link: 'iiiiiii',
  path_open: 'iiiiiIIii',
  path_readlink: 'iiiiii',
  path_remove_directory: 'iii',
  path_rename: 'iiiiii',
  path_symlink: 'iiiii',
  path_unlink_file: 'iii',
  poll_oneoff: 'iiii',
  proc_exit: 'i',
  proc_raise: 'i',
  sched_yield: '',
  random_get: 'ii',
  sock_accept: 'iii',
  sock_recv: 'iiiiii',
  sock_send: 'iiiii',
  sock_shutdown: 'ii',
};
