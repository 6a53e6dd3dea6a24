/**
 * Every limit of the service by name and unit; those that users meet are in docs/limits.md.
 * Limits an operator may change are defaults of configuration keys; the others are fixed here.
 */

/** One page of WebAssembly linear memory in bytes (WebAssembly core specification 4.2.8). */
export const PAGE_BYTES = 65_536;

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

export const LIMITS = {
  /** Memory of one execution: 512 MB (docs/limits.md). */
  memoryPagesMax: 8192,
  /** One absolute time per execution, slot wait included (docs/limits.md, docs/plugins.md "Executions"). */
  executionMsMax: 5000,
  /** Simultaneous executions of one plugin (docs/limits.md), and of one caller with that plugin. */
  slotsPerPlugin: 8,
  slotsPerCaller: 7,
  /** Serving processes of one host: each has a slot of every plugin that a single caller may use. */
  servingProcessesMax: 7,
  /** Executions admitted by one host at a time, including those that wait. */
  executionsInFlightMax: 4096,
  /** Executions of one plugin, and of one caller, admitted at a time, so that none takes all of them. */
  waitingPerPluginMax: 1024,
  waitingPerCallerMax: 512,
  /** Plugins with work in flight at one moment; others wait in the main thread. Two 32-bit mask words. */
  activeQueuesMax: 64,
  /** Threads that run plugins; more are never started. */
  lanesMax: 64,

  /** Request line and headers of a request. */
  requestHeadBytesMax: 16 * 1024,
  requestBodyBytesMax: 10 * MIB,
  responseBodyBytesMax: 10 * MIB,
  responseHeadersJsonBytesMax: 64 * KIB,
  moduleBytesMax: 64 * MIB,
  manifestBytesMax: 256 * KIB,

  /**
   * A statement or an outgoing request ends this long before its execution's deadline, so that the plugin can still
   * answer.
   */
  answerMarginMs: 250,
  /** Depth of nested calls between plugins (docs/plugins.md "Executions"). */
  callDepthMax: 8,
  /** Failed calls of one execution that are recorded. */
  callFailuresRecorded: 20,
  /** Nested calls under way on one host: the caller holds a thread while it waits, and its target needs another. */
  nestedCallsMax: 48,
  hostCallsMax: 10_000,
  hostCallBytesMax: 64 * MIB,
  /** One argument of a host function that is not a body. */
  hostCallTextBytesMax: 64 * KIB,
  logBytesPerExecution: 64 * KIB,
  logBytesPerPluginHour: 10 * MIB,
  recordingBytesMax: 1 * MIB,
  recordingBytesPerPluginHour: 64 * MIB,
  recordingsPerPluginHour: 1000,
  recordingBytesPerPlugin: 256 * MIB,
  recordingsPerPlugin: 10_000,
  kvKeyBytesMax: 512,
  kvValueBytesMax: 1 * MIB,
  kvListMax: 1000,
  /** Keys one call reads, and bytes of their values together. */
  kvManyKeysMax: 100,
  kvManyBytesMax: 4 * MIB,

  /** Connections of one execution to one of its databases: one for a transaction, one for other statements. */
  sqlHandlesPerDatabase: 2,
  /** Handles, transactions and cursors of one execution. */
  sqlOpenMax: 64,
  sqlRowsDefault: 1000,
  sqlRowsMax: 10_000,
  /** Values in one answer of a database: rows times columns, plus the elements of lists. */
  sqlCellsMax: 100_000,
  /** Bytes a database sends for one call. */
  sqlAnswerBytesMax: 4 * MIB,
  sqlArgumentsMax: 1000,
  /** Values in all arguments together: the main thread parses them. */
  sqlValuesMax: 20_000,
  /** An unused connection to a plugin's database is closed after this time. */
  sqlIdleMs: 60_000,

  /** Redirects followed for one request (docs/SECURITY.md "Outgoing connections"). */
  httpRedirectsMax: 5,
  /** Origins a plugin may have connections to; beyond that all its connections are closed together. */
  httpOriginsMax: 32,
  /** An unused outgoing connection of a plugin is closed after this time. */
  httpKeepAliveMs: 30_000,

  /** Size of a plugin's message, and replies of one execution (docs/messengers.md "Outgoing messages"). */
  messageCharsMax: 32_000,
  messageFilesMax: 10,
  repliesMax: 20,
  /** A file of a message, received or sent: the limit messengers set for bots. */
  messageFileBytesMax: 20 * MIB,
  /** An album of a messenger is whole when no further part has come for that long. */
  albumQuietMs: 1500,
  /** Files that came in a message are kept for this time. */
  messageFileMs: 24 * HOUR_MS,
  /** Time to fetch the files of one message. */
  messageFilesMs: 30_000,
  /** Messages of one plugin that wait to be sent, and students one call notifies. */
  messagesWaitingMax: 200_000,
  studentsToldMax: 100_000,
  messagesAppendedAtOnce: 1000,
  /** Bytes of all messages one call queues. */
  messagesQueuedBytesMax: 256 * MIB,
  messagesSentAtOnce: 32,
  /** Time for one call to a messenger. */
  messengerCallMs: 30_000,
  /** First delay before a failed message is sent again; the delay doubles each time. */
  messageRetryMs: 2000,
  messageRetryMsMax: 5 * MINUTE_MS,
  /** Age at which a failed message becomes a dead letter. */
  messageTriedMs: 24 * HOUR_MS,
  /** Longest wait that a messenger may ask for. */
  messengerBusyMsMax: HOUR_MS,
  /** Longest sleep of the sender between two looks at the queue. */
  messengerIdleMs: 1000,
  /** Updates handled at the same time on one host, and attempts at an update during which the host ended. */
  updatesAtOnce: 4,
  updateAttemptsMax: 5,
  messengerUpdateDays: 7,
  /** A code that links an account of a messenger to a user, and how many wrong ones an account may send. */
  linkCodeMs: 10 * MINUTE_MS,
  linkFailuresMax: 5,
  linkFailureWindowMs: 15 * MINUTE_MS,

  /** Size of an event a plugin publishes, and events of one execution. */
  eventBytesMax: 256 * KIB,
  eventsPerExecution: 1000,
  /** Time for one call to a subscriber. */
  eventCallMs: 15_000,
  /** First delay before a failed delivery is tried again; the delay doubles each time, about five hours in all. */
  eventRetryMs: 1000,
  eventRetryMsMax: 5 * MINUTE_MS,
  eventAttemptsMax: 65,
  eventTriedMs: 5 * HOUR_MS,
  /** Longest sleep of the deliverer between two looks at the queue. */
  eventIdleMs: 1000,
  /** Bytes a client of the event stream may leave unread. */
  eventFeedBytesMax: 1 * MIB,
  /** A stream ends after this time; the client connects again and is authenticated again. */
  eventStreamMs: 10 * MINUTE_MS,
  /** Clients of the event stream at a time, on one host. */
  eventWatchersMax: 50,
  eventSubscriptionsMax: 200,
  /** A guest memory larger than this is garbage-collected after the response is sent (docs/SECURITY.md). */
  collectAfterBytes: 16 * MIB,
  /** A larger memory is not used again, nor one of which more has to be zeroed (docs/RATIONALE.md). */
  recycleBytesMax: 32 * MIB,
  recycleZeroedBytesMax: 8 * MIB,
  /** Memories one lane keeps for later executions. */
  warmBytesPerLane: 64 * MIB,
  /** Largest image of what the start of a module leaves. */
  startImageBytesMax: 24 * MIB,
  quarantineStrikes: 3,
  quarantineWindowMs: 60_000,
  quarantineFirstMs: 30_000,
  quarantineMs: 600_000,
  /** Callers whose strikes are counted, and callers for whom triggers are suspended, on one host. */
  callersCountedMax: 10_000,
  /**
   * Time in which crashes of the serving process are counted together, and how long a version that ran during them is
   * suspended.
   */
  crashWindowMs: 10 * MINUTE_MS,
  crashSuspensionMs: HOUR_MS,
  /** Log lines about failures of one trigger per minute; the next line says how many were suppressed. */
  logLinesPerTriggerMinute: 5,
  /** Successful executions of one trigger recorded per second; failures are always recorded. */
  recordedSuccessesPerSecond: 5,
  /** Recorded successes of all triggers together, in one process: records of a thousand busy plugins would outgrow all else. */
  recordedSuccessesOfAllPerSecond: 100,

  /** How long a failed login counts; each one doubles the wait of the caller, up to this many seconds. */
  loginFailureWindowSeconds: 15 * 60,
  loginDelaySecondsMax: 60,
  /** Passwords of one caller compared at a time, and when a comparison without an answer counts as failed. */
  loginsAtOnceMax: 3,
  loginPendingSeconds: 30,
  knownBrowserMs: 180 * DAY_MS,
  /** bcrypt reads 72 bytes; a longer password is refused, not cut (docs/identity.md "Passwords"). */
  passwordBytesMin: 10,
  passwordBytesMax: 72,
  /** Passwords that wait to be compared, and for how long; further requests are refused with `Retry-After`. */
  passwordsWaitingMax: 512,
  passwordWaitMsMax: 25_000,
  /** Failures at an account within the window above after which strangers take turns, with at least this time between them, doubled each time. */
  accountFailuresFree: 10,
  accountPaceMsMin: 250,
  accountPaceMsMax: 5000,
  /** A temporary password expires after this time, and works once (docs/identity.md "Administrators"). */
  temporaryPasswordHours: 72,
  /** A change of access rights needs a password given within this time (docs/identity.md "Administrators"). */
  recentPasswordMs: 10 * MINUTE_MS,
  /** Life of a user session; each use extends it (docs/identity.md "Sessions"). */
  userSessionMs: 30 * DAY_MS,
  /** Life of an administrator's session from login, and without use (docs/identity.md "Sessions"). */
  adminSessionMs: 12 * HOUR_MS,
  adminIdleMs: 2 * HOUR_MS,
  /** How long a login with an identity provider may take. */
  idpLoginMs: 10 * MINUTE_MS,
  /** Time for a browser to bring a session to the origin of a plugin. */
  pluginLoginMs: MINUTE_MS,
  /**
   * Logins at the identity provider under way in one browser, so that all headers of a request fit
   * `requestHeadBytesMax`.
   */
  idpLoginsPerBrowser: 6,
  /**
   * Address to return to after such a login. The login's cookie holds it; browsers keep 4096 bytes of a cookie (RFC
   * 6265 section 6.1).
   */
  returnToCharsMax: 1000,
  /** Verified credentials in the cache, of each kind, and for how long. */
  verifiedCredentialsMax: 20_000,
  verifiedCredentialMs: 10_000,
  serviceKeyScopesMax: 500,
  adminKeyDefaultMs: 90 * DAY_MS,
  /** How long the answer of a request with an Idempotency-Key is kept. */
  idempotencyMs: 24 * 60 * 60_000,
  /** Requests with an Idempotency-Key that are kept of one caller. */
  idempotencyKeysPerCallerMax: 10_000,
  serviceKeyOverlapSecondsMax: 30 * 86_400,

  policyCharsMax: 4096,
  /** Graph checks in one evaluation, and round trips to the graph store (docs/authorization.md "Asking the graph"). */
  policyChecksMax: 200,
  policyRoundsMax: 4,
  /** Answers of the graph in the cache, and how long they stay there if no change removes them. */
  graphAnswersMax: 50_000,
  graphAnswerMs: 1000,
  /** Checks that wait for the graph store, and for how long; beyond either the store counts as unavailable. */
  graphWaitingMax: 5000,
  graphWaitMs: 3000,
  /** Cached contexts of users, and for how long (docs/authorization.md "Caches"). */
  subjectContextsMax: 20_000,
  subjectContextMs: 30_000,
  /** Cached settings of commands, and for how long (docs/authorization.md "Caches"). */
  commandSettingsMax: 10_000,
  commandSettingsMs: 60_000,
  /** Roles of one user, and of one command. */
  userRolesMax: 200,
  userTokensMax: 100,
  /** Study groups of one user that policies read. */
  userGroupsMax: 200,
  commandRolesMax: 20,
  /** An id in the relationship graph: encoded for the store it has at most the store's 1024 bytes. */
  graphIdCharsMax: 250,
  /** Attempts before an entry of the outbox is dead (docs/limits.md). */
  outboxAttemptsMax: 10,
  /** Entries read in one turn, and entries delivered in one turn. */
  outboxWindow: 1000,
  outboxBatch: 500,
  /** Tuples of one entry. */
  outboxTuplesMax: 500,
  /** Updates in one write to the graph store (docs/authorization.md "Freshness"). */
  graphUpdatesMax: 1000,
  /** Relationships one request deletes by a filter. */
  relationshipsDeletedMax: 10_000,
  /** Delivered entries are kept for this time. */
  outboxDays: 7,
  /** How long an admin write waits for the graph store before it answers (docs/authorization.md "Freshness"). */
  deliveryWaitMs: 2000,
  /** A file a user uploads; configuration `http.max_upload` (docs/limits.md). */
  uploadBytesMax: 2 * GIB,
  /** Largest object one CopyObject of S3 copies. */
  s3CopyBytesMax: 5 * GIB,
  /** Bytes of one read of a file (docs/limits.md). */
  fileChunkBytesMax: 1 * MIB,
  fileNameBytesMax: 255,
  mimeTypeCharsMax: 255,
  /** Uploads of one user for one plugin that are announced and not complete. */
  pendingUploadsMax: 100,
  /** From the announcement of a file to its completion; configuration `files.upload_seconds`. */
  uploadSeconds: 3600,
  /** Uploads one host receives at a time; each holds up to 1.25 MiB. */
  uploadsAtOnceMax: 200,
  uploadsAtOncePerUserMax: 10,
  uploadMsMax: 24 * HOUR_MS,
  /** Life of a signed address of a file: its holder may read the file. */
  fileLinkMs: 15 * MINUTE_MS,
  /** Life a plugin may ask for its own files. */
  fileTtlMsMax: 3660 * DAY_MS,
  /** Bytes read from disk at a time while a file is sent. */
  streamChunkBytes: 256 * KIB,
  /** Rows of deleted files are kept for this time. */
  removedFileDays: 7,
  /**
   * Bytes in the store that belong to no row are removed at this age; younger ones may belong to an upload under way.
   */
  orphanMsMin: 2 * HOUR_MS,

  /** Size of a frontend, packed and unpacked (docs/limits.md); the first is configuration `http.max_frontend`. */
  frontendPackedBytesMax: 64 * MIB,
  frontendBytesMax: 256 * MIB,
  frontendFilesMax: 10_000,
  frontendPathBytesMax: 500,
  /** Files of frontends kept in memory, packed and not; larger ones are read each time. */
  frontendCacheBytesMax: 64 * MIB,
  frontendCachedFileBytesMax: 4 * MIB,
  /** Frontends whose list of files is cached. */
  frontendsOpenMax: 200,

  /** Ids of university records (docs/university.md "Records"), and their additional fields. */
  externalIdCharsMax: 128,
  metadataCharsMax: 16 * KIB,
  /** One record as JSON. */
  universityRecordBytesMax: 256 * KIB,
  /** One list of records, of a batch request or of all pages of a source. */
  universityListBytesMax: 1 * GIB,
  universityRecordsMax: 1_000_000,
  /** Nesting of objects and lists in a record. */
  universityNestingMax: 64,
  /** Time for one pull, from its first list to its last. */
  universityPullMs: 6 * HOUR_MS,
  /** Records written in one transaction. */
  universityChunk: 500,
  /** Mistakes reported in one answer, and kept for one import. */
  importErrorsTold: 1000,
  importErrorsKept: 10_000,
  /** Records that a stopped list would end, kept by name for each type. */
  importEndingKept: 10_000,
  /** Imports in the log. */
  importsKept: 1000,
  originsMax: 100,
  listLimitMax: 200,
} as const;

/**
 * Checks the relations between limits; called once at start.
 *
 * @throws Error naming the relation that does not hold: a programming mistake, not a mistake of the operator
 */
export function assertLimits(): void {
  const relations: Array<[string, boolean]> = [
    ['memoryPagesMax is 512 MB', LIMITS.memoryPagesMax * PAGE_BYTES === 512 * MIB],
    ['executionsInFlightMax has one bit', (LIMITS.executionsInFlightMax & (LIMITS.executionsInFlightMax - 1)) === 0],
    ['activeQueuesMax fits two mask words', LIMITS.activeQueuesMax === 64],
    ['a plugin can fill its slots', LIMITS.slotsPerPlugin <= LIMITS.lanesMax],
    ['every serving process has a slot', LIMITS.servingProcessesMax <= LIMITS.slotsPerCaller],
    ['one caller leaves a slot to the others', LIMITS.slotsPerCaller < LIMITS.slotsPerPlugin],
    ['one caller leaves room to the others', LIMITS.waitingPerCallerMax < LIMITS.waitingPerPluginMax],
    ['an answer of a database fits one execution', LIMITS.sqlAnswerBytesMax <= LIMITS.hostCallBytesMax],
    [
      'nested calls leave threads to run what they wait for',
      LIMITS.nestedCallsMax <= LIMITS.lanesMax - LIMITS.slotsPerPlugin,
    ],
    ['a chunk of a file fits one execution', LIMITS.fileChunkBytesMax <= LIMITS.hostCallBytesMax],
    ['an upload is over before its bytes count as orphans', LIMITS.uploadSeconds * 1000 < LIMITS.orphanMsMin],
    ['a kv value fits one execution', LIMITS.kvValueBytesMax <= LIMITS.hostCallBytesMax],
    ['values read together fit one execution', LIMITS.kvManyBytesMax * 2 <= LIMITS.hostCallBytesMax],
    ['ids of university data may stand in the graph', LIMITS.externalIdCharsMax <= LIMITS.graphIdCharsMax],
    ['a lane can keep the largest memory that is used again', LIMITS.recycleBytesMax <= LIMITS.warmBytesPerLane],
    ['a memory with the largest image can be used again', LIMITS.startImageBytesMax < LIMITS.recycleBytesMax],
    ['one execution cannot use up the plugin-hour of logs', LIMITS.logBytesPerExecution < LIMITS.logBytesPerPluginHour],
    ['quarantine doubles upwards', LIMITS.quarantineFirstMs < LIMITS.quarantineMs],
    ['an idle admin session ends before its absolute end', LIMITS.adminIdleMs < LIMITS.adminSessionMs],
    ['an attempt that waits still counts', LIMITS.passwordWaitMsMax < LIMITS.loginPendingSeconds * 1000],
    ['a password given at login is recent for less than the session', LIMITS.recentPasswordMs < LIMITS.adminIdleMs],
    ['a batch of the outbox is part of what is looked at', LIMITS.outboxBatch <= LIMITS.outboxWindow],
    ['an entry of the outbox fits one write', LIMITS.outboxTuplesMax <= LIMITS.graphUpdatesMax],
    // Encrypted and in base64 a login takes at most twice the bytes of the address it returns to.
    [
      'logins under way leave a quarter of the headers to the request',
      LIMITS.idpLoginsPerBrowser * LIMITS.returnToCharsMax * 2 <= LIMITS.requestHeadBytesMax * 0.75,
    ],
    [
      'bcrypt reads every password whole',
      LIMITS.passwordBytesMin < LIMITS.passwordBytesMax && LIMITS.passwordBytesMax <= 72,
    ],
  ];
  for (const [name, holds] of relations) if (!holds) throw new Error(`limit relation broken: ${name}`);
}
