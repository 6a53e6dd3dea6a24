/** Made from the OpenAPI document by "npm run client": not to be changed by hand. */

/** A refusal of any code. */
export type Problem = components['schemas']['ProblemDetails'] & {
  status: number;
  code: 'malformed_request' | 'unauthorized' | 'forbidden' | 'not_found' | 'method_not_allowed' | 'request_timeout' | 'conflict' | 'not_uploaded' | 'upload_mismatch' | 'expired' | 'quota_exceeded' | 'range_not_satisfiable' | 'second_factor_required' | 'second_factor_setup_required' | 'password_change_required' | 'password_confirmation_required' | 'page_proof_required' | 'too_many_attempts' | 'permissions_not_accepted' | 'confirmation_required' | 'body_too_large' | 'unsupported_media_type' | 'precondition_failed' | 'validation_failed' | 'idempotency_key_reused' | 'module_refused' | 'frontend_refused' | 'internal' | 'plugin_trapped' | 'plugin_error' | 'plugin_response_invalid' | 'plugin_quota_exceeded' | 'no_slot' | 'memory_budget' | 'quarantined' | 'draining' | 'unavailable' | 'deadline_exceeded' | 'storage_full';
};

type Refused<Status extends number> = {
  [S in Status]: {
    headers: Record<string, unknown>;
    content: { 'application/problem+json': Problem };
  };
};

export interface paths {
  '/api/admin/access/explain': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          /** Id of the user */
          'user': number;
          'plugin': string;
          'trigger'?: string;
          'command'?: string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AccessExplanation'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AccessExplanation'];
        } };
      };
    };
  };
  '/api/admin/activity': {
    get: {
      parameters: {
        query?: {
          /** How far to look back */
          'window'?: '15m' | '1h' | '24h' | '7d' | '30d';
          /** The only plugin to count */
          'plugin'?: string;
          /** The only trigger of it to count */
          'trigger'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'window': '15m' | '1h' | '24h' | '7d' | '30d';
            'step_seconds': number;
            'since': string;
            'until': string;
            /** Execution slots of one plugin on one host */
            'slots_max': number;
            'total': components['schemas']['ActivitySum'];
            'points': components['schemas']['ActivityPoint'][];
            /** The 20 with the most executions; empty where one plugin is asked for */
            'plugins': ({
              /** Id of the plugin */
              'plugin': string;
              /** Executions that ended */
              'requests': number;
              /** Those that ended without an answer of the plugin, or with a status of 500 and above */
              'failed': number;
              /** How long half of them took at most, the wait for a slot included */
              'p50_ms': number | null;
              'p95_ms': number | null;
              'p99_ms': number | null;
              /** Execution slots in use on average */
              'slots': number;
            })[];
            /** Of the plugin asked for the 20 with the most executions */
            'triggers': ({
              'trigger': string;
              /** Executions that ended */
              'requests': number;
              /** Those that ended without an answer of the plugin, or with a status of 500 and above */
              'failed': number;
              /** How long half of them took at most, the wait for a slot included */
              'p50_ms': number | null;
              'p95_ms': number | null;
              'p99_ms': number | null;
              /** Execution slots in use on average */
              'slots': number;
            })[];
          };
        } };
      };
    };
  };
  '/api/admin/attention': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Attention'][];
          };
        } };
      };
    };
  };
  '/api/admin/keys': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['AdminKey'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
    post: {
      parameters: {
        header?: {
          /** A key of this request alone. The same request with the same key is refused with 409 and the id of what was made. */
          'Idempotency-Key'?: string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'name': string;
          /** What the key opens: read, people, plugins:deploy, plugins:accept, access, university, operate, admin, or plugins:deploy:<plugin id> */
          'scopes': string[];
          /** When the key ends; without it in 90 days; null for never */
          'expires_at'?: string | null;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the key that is no secret */
            'public': string;
            'scopes': string[];
            /** Id of the administrator who made it */
            'made_by': number;
            'created_at': string;
            'expires_at': string | null;
            'last_used_at': string | null;
            'rotated_at': string | null;
            /** Until when the secret before the last rotation is valid */
            'old_secret_until': string | null;
            /** The credential: Authorization: Bearer <key> */
            'key': string;
            /** Plugins of its scopes that are not uploaded */
            'unknown_plugins'?: string[];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the key that is no secret */
            'public': string;
            'scopes': string[];
            /** Id of the administrator who made it */
            'made_by': number;
            'created_at': string;
            'expires_at': string | null;
            'last_used_at': string | null;
            'rotated_at': string | null;
            /** Until when the secret before the last rotation is valid */
            'old_secret_until': string | null;
            /** The credential: Authorization: Bearer <key> */
            'key': string;
            /** Plugins of its scopes that are not uploaded */
            'unknown_plugins'?: string[];
          };
        } };
      };
    };
  };
  '/api/admin/keys/{key}': {
    get: {
      parameters: {
        path: {
          /** Id of the administration key */
          'key': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminKey'];
        } };
      };
    };
    delete: {
      parameters: {
        path: {
          /** Id of the administration key */
          'key': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/keys/{key}/rotate': {
    post: {
      parameters: {
        header?: {
          /** A key of this request alone. The same request with the same key is refused with 409 and the id of what was made. */
          'Idempotency-Key'?: string;
        };
        path: {
          /** Id of the administration key */
          'key': number;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** How long the old secret stays valid; 0 without it */
          'overlap_seconds'?: number;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the key that is no secret */
            'public': string;
            'scopes': string[];
            /** Id of the administrator who made it */
            'made_by': number;
            'created_at': string;
            'expires_at': string | null;
            'last_used_at': string | null;
            'rotated_at': string | null;
            /** Until when the secret before the last rotation is valid */
            'old_secret_until': string | null;
            /** The credential: Authorization: Bearer <key> */
            'key': string;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the key that is no secret */
            'public': string;
            'scopes': string[];
            /** Id of the administrator who made it */
            'made_by': number;
            'created_at': string;
            'expires_at': string | null;
            'last_used_at': string | null;
            'rotated_at': string | null;
            /** Until when the secret before the last rotation is valid */
            'old_secret_until': string | null;
            /** The credential: Authorization: Bearer <key> */
            'key': string;
          };
        } };
      };
    };
  };
  '/api/admin/auth/setup': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'email': string;
          /** 10 to 72 bytes, and none of the most common passwords */
          'password': string;
          'name'?: string;
          /** Language in which plugins address the administrator; left out: `ru` */
          'locale'?: 'ru' | 'en';
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminLogin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminLogin'];
        } };
      };
    };
  };
  '/api/admin/auth/login': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'email': string;
          'password': string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminLogin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminLogin'];
        } };
      };
    };
  };
  '/api/admin/auth/check': {
    get: {
      parameters: {};
      responses: Refused<400 | 403 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminLoginCheck'];
        } };
      };
    };
  };
  '/api/admin/auth/password': {
    put: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'current_password': string;
          /** 10 to 72 bytes, and none of the most common passwords */
          'new_password': string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'admin': components['schemas']['CurrentAdmin'];
            /** Value of the header X-Page-Proof, which requests of browsers need */
            'page_proof': string;
            /** How many administration keys go on */
            'admin_keys': number;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'admin': components['schemas']['CurrentAdmin'];
            /** Value of the header X-Page-Proof, which requests of browsers need */
            'page_proof': string;
            /** How many administration keys go on */
            'admin_keys': number;
          };
        } };
      };
    };
  };
  '/api/admin/auth/confirm': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'password'?: string;
          /** The value of POST /api/admin/auth/confirm/passkey */
          'continuation'?: string;
          /** What navigator.credentials.get answered, as JSON */
          'passkey'?: {
            'id': string;
            'rawId': string;
            'type': 'public-key';
            'response': {
              'clientDataJSON': string;
              'authenticatorData': string;
              'signature': string;
              'userHandle'?: string;
            };
            'authenticatorAttachment'?: 'platform' | 'cross-platform';
            'clientExtensionResults'?: Record<string, unknown>;
          };
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminLogin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminLogin'];
        } };
      };
    };
  };
  '/api/admin/auth/logout': {
    post: {
      parameters: {};
      responses: Refused<400 | 403 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/auth/login/second-factor': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          /** The value of the answer that asked for it */
          'continuation': string;
          /** Six digits of the authenticator app */
          'code'?: string;
          /** One of the codes to keep; it works once */
          'recovery_code'?: string;
          /** What navigator.credentials.get answered, as JSON */
          'passkey'?: {
            'id': string;
            'rawId': string;
            'type': 'public-key';
            'response': {
              'clientDataJSON': string;
              'authenticatorData': string;
              'signature': string;
              'userHandle'?: string;
            };
            'authenticatorAttachment'?: 'platform' | 'cross-platform';
            'clientExtensionResults'?: Record<string, unknown>;
          };
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminLogin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminLogin'];
        } };
      };
    };
  };
  '/api/admin/auth/confirm/passkey': {
    post: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Names this question in the answer; valid for five minutes */
            'continuation': string;
            /** What navigator.credentials.get takes as publicKey, as JSON */
            'options': components['schemas']['PasskeyUseOptions'];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Names this question in the answer; valid for five minutes */
            'continuation': string;
            /** What navigator.credentials.get takes as publicKey, as JSON */
            'options': components['schemas']['PasskeyUseOptions'];
          };
        } };
      };
    };
  };
  '/api/admin/auth/login/passwordless/begin': {
    post: {
      parameters: {};
      responses: Refused<400 | 403 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['PasswordlessLogin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['PasswordlessLogin'];
        } };
      };
    };
  };
  '/api/admin/auth/login/passwordless': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          /** The value of the answer that asked for it */
          'continuation': string;
          /** What navigator.credentials.get answered, as JSON */
          'passkey'?: {
            'id': string;
            'rawId': string;
            'type': 'public-key';
            'response': {
              'clientDataJSON': string;
              'authenticatorData': string;
              'signature': string;
              'userHandle'?: string;
            };
            'authenticatorAttachment'?: 'platform' | 'cross-platform';
            'clientExtensionResults'?: Record<string, unknown>;
          };
          /** One of the codes to keep; it works once */
          'recovery_code'?: string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['PasswordlessAdmin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['PasswordlessAdmin'];
        } };
      };
    };
  };
  '/api/admin/auth/second-factor': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 409 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['SecondFactor'];
        } };
      };
    };
  };
  '/api/admin/auth/passkeys/begin': {
    post: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Names this enrolment in its second half; valid for five minutes */
            'continuation': string;
            /** What navigator.credentials.create takes as publicKey, as JSON */
            'options': components['schemas']['PasskeyCreationOptions'];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Names this enrolment in its second half; valid for five minutes */
            'continuation': string;
            /** What navigator.credentials.create takes as publicKey, as JSON */
            'options': components['schemas']['PasskeyCreationOptions'];
          };
        } };
      };
    };
  };
  '/api/admin/auth/passkeys': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          /** The value of the answer that began it */
          'continuation': string;
          'name': string;
          /** What navigator.credentials.create answered, as JSON */
          'response': {
            'id': string;
            'rawId': string;
            'type': 'public-key';
            'response': {
              'clientDataJSON': string;
              'attestationObject': string;
              'transports'?: string[];
            };
            'authenticatorAttachment'?: 'platform' | 'cross-platform';
            'clientExtensionResults'?: Record<string, unknown>;
          };
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': {
            'passkey': components['schemas']['Passkey'];
            /** With the first second factor: codes to keep, shown once */
            'recovery_codes': string[] | null;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'passkey': components['schemas']['Passkey'];
            /** With the first second factor: codes to keep, shown once */
            'recovery_codes': string[] | null;
          };
        } };
      };
    };
  };
  '/api/admin/auth/passkeys/{passkey}': {
    delete: {
      parameters: {
        path: {
          /** Id of the passkey */
          'passkey': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/auth/totp/begin': {
    post: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Names this enrolment in its second half; valid for five minutes */
            'continuation': string;
            /** The secret to type, base32 */
            'secret': string;
            /** The same as an otpauth: address, for a QR code */
            'uri': string;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Names this enrolment in its second half; valid for five minutes */
            'continuation': string;
            /** The secret to type, base32 */
            'secret': string;
            /** The same as an otpauth: address, for a QR code */
            'uri': string;
          };
        } };
      };
    };
  };
  '/api/admin/auth/totp': {
    put: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          /** The value of the answer that began it */
          'continuation': string;
          /** Six digits of the app */
          'code': string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'totp_since': string;
            /** With the first second factor: codes to keep, shown once */
            'recovery_codes': string[] | null;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'totp_since': string;
            /** With the first second factor: codes to keep, shown once */
            'recovery_codes': string[] | null;
          };
        } };
      };
    };
    delete: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/auth/recovery-codes': {
    post: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'recovery_codes': string[];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'recovery_codes': string[];
          };
        } };
      };
    };
  };
  '/api/admin/admins': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only of this user */
          'user'?: number;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': ({
              'global_user_id': number;
              'email': string;
              'must_change_password': boolean;
              /** Until when the temporary password is valid */
              'temporary_until': string | null;
              'created_at': string;
              /** What the administrator may do; GET /api/admin/admins/roles says what each includes */
              'roles': ('auditor' | 'operator' | 'plugin_manager' | 'access_manager' | 'owner')[];
              /** The plugins a plugin manager may manage; null for all of them */
              'plugins': string[] | null;
              /** Whether a login needs a passkey or a code besides the password */
              'has_second_factor': boolean;
              /** What became of the mail with the last temporary password */
              'mail': {
                'state': 'pending' | 'sent' | 'failed';
                'error': string | null;
                'at': string | null;
              } | null;
              'display_name': string;
            })[];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
    post: {
      parameters: {
        header?: {
          /** A key of this request alone. The same request with the same key gets the same answer for 24 hours. */
          'Idempotency-Key'?: string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'global_user_id': number;
          'email': string;
          /** What the administrator may do; GET /api/admin/admins/roles says what each includes */
          'roles'?: ('auditor' | 'operator' | 'plugin_manager' | 'access_manager' | 'owner')[];
          /** The plugins a plugin manager may manage; null for all of them */
          'plugins'?: string[] | null;
          /** Sent by legacy clients and ignored: the service makes the temporary password */
          'password'?: string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminAccount'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminAccount'];
        } };
      };
    };
  };
  '/api/admin/admins/roles': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': ({
              'role': 'auditor' | 'operator' | 'plugin_manager' | 'access_manager' | 'owner';
              'scopes': ('read' | 'people' | 'plugins:deploy' | 'plugins:accept' | 'access' | 'university' | 'operate' | 'admin')[];
            })[];
          };
        } };
      };
    };
  };
  '/api/admin/admins/{user}': {
    patch: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** What the administrator may do; GET /api/admin/admins/roles says what each includes */
          'roles': ('auditor' | 'operator' | 'plugin_manager' | 'access_manager' | 'owner')[];
          /** The plugins a plugin manager may manage; null for all of them */
          'plugins'?: string[] | null;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminAccount'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminAccount'];
        } };
      };
    };
    delete: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/admins/{user}/reset-password': {
    post: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminAccount'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AdminAccount'];
        } };
      };
    };
  };
  '/api/admin/admins/{user}/second-factor': {
    delete: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/audit': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only this action, for example trigger.settings */
          'action'?: string;
          /** Only of this user */
          'actor'?: number;
          /** Only changes of objects of this type */
          'object_type'?: string;
          /** Only changes of the object with this id */
          'object_id'?: string;
          /** Only what is not older: a time like 2026-01-31T12:00:00Z, or a day; in UTC where no zone is named */
          'since'?: string;
          /** Only what is older: a time like 2026-01-31T12:00:00Z, or a day; in UTC where no zone is named */
          'until'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['AuditEntry'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/audit.csv': {
    get: {
      parameters: {
        query?: {
          /** Only this action, for example trigger.settings */
          'action'?: string;
          /** Only of this user */
          'actor'?: number;
          /** Only changes of objects of this type */
          'object_type'?: string;
          /** Only changes of the object with this id */
          'object_id'?: string;
          /** Only what is not older: a time like 2026-01-31T12:00:00Z, or a day; in UTC where no zone is named */
          'since'?: string;
          /** Only what is older: a time like 2026-01-31T12:00:00Z, or a day; in UTC where no zone is named */
          'until'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'text/csv': unknown;
        } };
      };
    };
  };
  '/api/admin/audit/{entry}': {
    get: {
      parameters: {
        path: {
          /** Id of the entry of the audit log */
          'entry': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AuditEntry'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/commands/settings': {
    get: {
      parameters: {
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['CommandSettings'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/commands/{cmd}/settings': {
    get: {
      parameters: {
        path: {
          'id': string;
          'cmd': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['CommandSettings'];
        } };
        304: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/plugins/{id}/commands/{cmd}/enabled': {
    put: {
      parameters: {
        header?: {
          /** The ETag of the settings. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
          'cmd': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'enabled': boolean;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/commands/{cmd}/policy': {
    put: {
      parameters: {
        header?: {
          /** The ETag of the settings. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
          'cmd': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** Empty for no policy */
          'expression': string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/commands/{cmd}/roles': {
    put: {
      parameters: {
        header?: {
          /** The ETag of the settings. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
          'cmd': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'system_role'?: string | null;
          'global_roles'?: string[];
          'plugin_role'?: string | null;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/commands/{cmd}/record': {
    put: {
      parameters: {
        header?: {
          /** The ETag of the settings. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
          'cmd': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'record': boolean;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/commands/{cmd}/policy/revisions': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
        path: {
          'id': string;
          'cmd': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['PolicyRevision'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/commands/{cmd}/policy/revisions/{revision}/restore': {
    post: {
      parameters: {
        header?: {
          /** The ETag of the settings. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
          'cmd': string;
          /** Id of the revision */
          'revision': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 412 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedCommandSettings'];
        } };
      };
    };
  };
  '/api/admin/config': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Configuration file that was read */
            'file': string | null;
            'settings': components['schemas']['ConfigSetting'][];
            /** How what is written now differs; null where it is not known */
            'pending': components['schemas']['PendingConfig'] | null;
            /** Fixed limits of this release, by name and unit */
            'limits': Record<string, number>;
          };
        } };
      };
    };
  };
  '/api/admin/doctor': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'looked_at': string;
            'checks': components['schemas']['DoctorCheck'][];
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/databases/test': {
    post: {
      parameters: {
        path: {
          'id': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** Logical name of the database in the manifest */
          'name'?: string;
          /** What to try; without it the one that is installed under the name */
          'connection_string'?: string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ConnectionTrial'];
        } };
      };
    };
  };
  '/api/admin/authz/drift': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 409 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Drift'];
        } };
      };
    };
  };
  '/api/admin/authz/drift/repair': {
    post: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 409 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Drift'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Drift'];
        } };
      };
    };
  };
  '/api/admin/events/subscriptions': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['EventSubscription'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
    post: {
      parameters: {
        header?: {
          /** A key of this request alone. The same request with the same key is refused with 409 and the id of what was made. */
          'Idempotency-Key'?: string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'name': string;
          /** Where events are sent to: an http or https address without a name, a password and # */
          'url': string;
          /** Types of events; empty for all */
          'types'?: string[];
          /** Plugins whose events are sent; empty for all */
          'plugins'?: string[];
          'enabled'?: boolean;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** Without its query to callers who may not change it */
            'url': string;
            'types': string[];
            'plugins': string[];
            'enabled': boolean;
            /** Why the service switched it off; empty where it did not */
            'disabled_why': string;
            /** How many, by state */
            'deliveries': {
              'waiting': number;
              'delivered': number;
              'dead': number;
            };
            'created_at': string;
            'updated_at': string;
            /** Signs what is sent (Standard Webhooks); it is never shown again */
            'secret': string;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** Without its query to callers who may not change it */
            'url': string;
            'types': string[];
            'plugins': string[];
            'enabled': boolean;
            /** Why the service switched it off; empty where it did not */
            'disabled_why': string;
            /** How many, by state */
            'deliveries': {
              'waiting': number;
              'delivered': number;
              'dead': number;
            };
            'created_at': string;
            'updated_at': string;
            /** Signs what is sent (Standard Webhooks); it is never shown again */
            'secret': string;
          };
        } };
      };
    };
  };
  '/api/admin/events/subscriptions/{id}': {
    get: {
      parameters: {
        path: {
          /** Id of the subscription */
          'id': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['EventSubscription'];
        } };
      };
    };
    patch: {
      parameters: {
        path: {
          /** Id of the subscription */
          'id': number;
        };
      };
      requestBody: { content: {
        'application/json': {
          'name'?: string;
          /** Where events are sent to: an http or https address without a name, a password and # */
          'url'?: string;
          /** Types of events; empty for all */
          'types'?: string[];
          /** Plugins whose events are sent; empty for all */
          'plugins'?: string[];
          'enabled'?: boolean;
          /** Make another secret; another url does so as well */
          'new_secret'?: boolean;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** Without its query to callers who may not change it */
            'url': string;
            'types': string[];
            'plugins': string[];
            'enabled': boolean;
            /** Why the service switched it off; empty where it did not */
            'disabled_why': string;
            /** How many, by state */
            'deliveries': {
              'waiting': number;
              'delivered': number;
              'dead': number;
            };
            'created_at': string;
            'updated_at': string;
            /** Signs what is sent (Standard Webhooks); it is never shown again */
            'secret'?: string;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** Without its query to callers who may not change it */
            'url': string;
            'types': string[];
            'plugins': string[];
            'enabled': boolean;
            /** Why the service switched it off; empty where it did not */
            'disabled_why': string;
            /** How many, by state */
            'deliveries': {
              'waiting': number;
              'delivered': number;
              'dead': number;
            };
            'created_at': string;
            'updated_at': string;
            /** Signs what is sent (Standard Webhooks); it is never shown again */
            'secret'?: string;
          };
        } };
      };
    };
    delete: {
      parameters: {
        path: {
          /** Id of the subscription */
          'id': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/events/subscriptions/{id}/deliveries': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only deliveries in this state */
          'state'?: 'waiting' | 'delivered' | 'dead';
        };
        path: {
          /** Id of the subscription */
          'id': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['EventDelivery'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/events/subscriptions/{id}/retry': {
    post: {
      parameters: {
        query?: {
          /** Only the delivery of this event */
          'event'?: string;
        };
        path: {
          /** Id of the subscription */
          'id': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'retried': number;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'retried': number;
          };
        } };
      };
    };
  };
  '/api/admin/events/subscriptions/{id}/test': {
    post: {
      parameters: {
        path: {
          /** Id of the subscription */
          'id': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['EventTrial'];
        } };
      };
    };
  };
  '/api/admin/events': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only events of this plugin */
          'plugin'?: string;
          /** Only events of this type */
          'type'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Event'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/events/{event}': {
    get: {
      parameters: {
        path: {
          /** Id of the event, as subscribers get it */
          'event': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Event'];
        } };
      };
    };
  };
  '/api/admin/events/stream': {
    get: {
      parameters: {
        query?: {
          /** Only events of this plugin */
          'plugin'?: string;
          /** Only events of this type */
          'type'?: string;
          /** Begin behind the entry of this number */
          'after'?: number;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'text/event-stream': unknown;
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/executions': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only those that ended this way; failed: all but ok and refused */
          'outcome'?: 'ok' | 'handler_error' | 'trapped' | 'exited' | 'invalid_response' | 'quota' | 'load_failed' | 'no_slot' | 'queue_full' | 'deadline' | 'memory_budget' | 'crashed' | 'draining' | 'refused' | 'failed';
          /** Only those of this trigger */
          'trigger'?: string;
          /** Only those of this caller: user:<id>, service:<id> or public */
          'principal'?: string;
          /** Only what is not older: a time like 2026-01-31T12:00:00Z, or a day; in UTC where no zone is named */
          'since'?: string;
          /** Only what is older: a time like 2026-01-31T12:00:00Z, or a day; in UTC where no zone is named */
          'until'?: string;
          /** Only those of this request */
          'request_id'?: string;
          /** Only those of this trace */
          'trace_id'?: string;
        };
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Execution'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/executions': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only those of this plugin */
          'plugin'?: string;
          /** Only those that ended this way; failed: all but ok and refused */
          'outcome'?: 'ok' | 'handler_error' | 'trapped' | 'exited' | 'invalid_response' | 'quota' | 'load_failed' | 'no_slot' | 'queue_full' | 'deadline' | 'memory_budget' | 'crashed' | 'draining' | 'refused' | 'failed';
          /** Only those of this trigger */
          'trigger'?: string;
          /** Only those of this caller: user:<id>, service:<id> or public */
          'principal'?: string;
          /** Only what is not older: a time like 2026-01-31T12:00:00Z, or a day; in UTC where no zone is named */
          'since'?: string;
          /** Only what is older: a time like 2026-01-31T12:00:00Z, or a day; in UTC where no zone is named */
          'until'?: string;
          /** Only those of this request */
          'request_id'?: string;
          /** Only those of this trace */
          'trace_id'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Execution'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/executions/stream': {
    get: {
      parameters: {
        query?: {
          /** Only those of this plugin */
          'plugin'?: string;
          /** Only those that ended this way; failed: all but ok and refused */
          'outcome'?: 'ok' | 'handler_error' | 'trapped' | 'exited' | 'invalid_response' | 'quota' | 'load_failed' | 'no_slot' | 'queue_full' | 'deadline' | 'memory_budget' | 'crashed' | 'draining' | 'refused' | 'failed';
          /** Only those of this trigger */
          'trigger'?: string;
          /** Only those of this caller: user:<id>, service:<id> or public */
          'principal'?: string;
          /** Begin behind the entry of this number */
          'after'?: number;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'text/event-stream': unknown;
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/executions/{execution}': {
    get: {
      parameters: {
        path: {
          'id': string;
          /** Id of the execution record */
          'execution': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'request_id': string;
            /** Trace id of the caller (W3C trace context) */
            'trace_id': string | null;
            'plugin_id': string;
            'version': string;
            'trigger': string;
            /** Who called: user:<id>, service:<id> or public */
            'principal': string;
            'outcome': 'ok' | 'handler_error' | 'trapped' | 'exited' | 'invalid_response' | 'quota' | 'load_failed' | 'no_slot' | 'queue_full' | 'deadline' | 'memory_budget' | 'crashed' | 'draining' | 'refused';
            /** The HTTP status the caller got; 0 where there was none */
            'status': number;
            'started_at': string;
            'queue_wait_ms': number;
            'run_ms': number;
            'host_calls': number;
            /** Most memory it had, in pages of 64 KiB */
            'peak_pages': number;
            'failure': string | null;
            'log_lines': number;
            /** How it was decided that the caller may, or not; null where nothing was recorded: a trigger without a policy, an erased person */
            'decision': components['schemas']['RecordedDecision'] | null;
            'log': ({
              'level': 'debug' | 'info' | 'warn' | 'error';
              'text': string;
            })[];
            /** Whether it can be run again with plugin replay */
            'recorded': boolean;
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/executions/{execution}/recording': {
    get: {
      parameters: {
        path: {
          'id': string;
          /** Id of the execution record */
          'execution': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Recording'];
        } };
      };
    };
  };
  '/plugins/{id}/app': {
    get: {
      parameters: {
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 404 | 500 | 503> & {
        308: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/plugins/{id}/app/{rest}': {
    get: {
      parameters: {
        path: {
          'id': string;
          'rest': string;
        };
      };
      responses: Refused<400 | 401 | 404 | 500> & {
        200: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
        302: { headers: Record<string, unknown>; content?: never };
        304: { headers: Record<string, unknown>; content?: never };
        307: { headers: Record<string, unknown>; content?: never };
        503: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.draining'] | components['schemas']['Problem.unavailable'];
          'text/html': unknown;
        } };
      };
    };
  };
  '/api/admin/gallery': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['GalleryPlugin'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/gallery/{id}': {
    post: {
      parameters: {
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Upload'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Upload'];
        } };
      };
    };
  };
  '/api/admin/schema/definitions': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Where it was read: the graph store, or this release while the store is away */
            'source': 'release' | 'store';
            'definitions': components['schemas']['GraphDefinition'][];
            /** The same as text, in the language of SpiceDB */
            'schema': string;
          };
        } };
      };
    };
  };
  '/healthz': {
    get: {
      parameters: {};
      responses: Refused<400 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'status': 'alive';
            /** Release, for administrators, administration keys, and clients on this machine that come through no proxy */
            'version'?: string;
            'pid'?: number;
            'uptime_seconds'?: number;
          };
        } };
      };
    };
  };
  '/readyz': {
    get: {
      parameters: {};
      responses: Refused<400 | 500> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'status': 'ready' | 'degraded';
            /** Each thing it needs, for administrators, administration keys, and clients on this machine that come through no proxy */
            'checks'?: components['schemas']['HealthCheck'][];
          };
        } };
        503: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.draining'] | components['schemas']['Problem.unavailable'];
          'application/json': {
            'status': 'starting' | 'draining' | 'unavailable';
            /** What is missing */
            'reason'?: string;
            /** The check that failed, by its name */
            'check'?: string;
            /** Each thing it needs, for administrators, administration keys, and clients on this machine that come through no proxy */
            'checks'?: components['schemas']['HealthCheck'][];
          };
        } };
      };
    };
  };
  '/api/admin/hosts': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Host'][];
          };
        } };
      };
    };
  };
  '/api/admin/hosts/{host}': {
    delete: {
      parameters: {
        path: {
          /** Id of the host */
          'host': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/auth/idp/start': {
    get: {
      parameters: {
        query?: {
          /** Path of this service to go back to; the home page for everything else */
          'return_to'?: string;
          /** Whether the provider must ask for the credentials again */
          'fresh'?: '1' | '0' | 'true' | 'false';
        };
      };
      responses: Refused<400 | 500> & {
        302: { headers: Record<string, unknown>; content?: never };
        404: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.not_found'];
          'text/html': unknown;
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'text/html': unknown;
        } };
        503: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.draining'] | components['schemas']['Problem.unavailable'];
          'text/html': unknown;
        } };
      };
    };
  };
  '/api/auth/idp/callback': {
    get: {
      parameters: {};
      responses: Refused<500> & {
        302: { headers: Record<string, unknown>; content?: never };
        400: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.malformed_request'];
          'text/html': unknown;
        } };
        403: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.forbidden'];
          'text/html': unknown;
        } };
        404: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.not_found'];
          'text/html': unknown;
        } };
        503: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.draining'] | components['schemas']['Problem.unavailable'];
          'text/html': unknown;
        } };
      };
    };
  };
  '/api/admin/jobs': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['JobQueue'][];
          };
        } };
      };
    };
  };
  '/api/admin/mail/test': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'to': string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['MailTrial'];
        } };
      };
    };
  };
  '/api/admin/messages': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only messages of this plugin */
          'plugin'?: string;
          /** Only messages in this state */
          'state'?: 'queued' | 'sending' | 'sent' | 'failed' | 'uncertain';
          /** Only messages of this messenger: TELEGRAM or VK */
          'channel'?: string;
          /** Only messages of this request */
          'request_id'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Message'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/messages/{message}': {
    get: {
      parameters: {
        path: {
          /** Id of the message */
          'message': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Message'];
        } };
      };
    };
  };
  '/api/admin/messages/{message}/retry': {
    post: {
      parameters: {
        path: {
          /** Id of the message */
          'message': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Message'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Message'];
        } };
      };
    };
  };
  '/api/messengers/link-code': {
    post: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': {
            'code': string;
            'expires_at': string;
            'channels': ({
              'channel': 'TELEGRAM' | 'VK';
              /** Opens a chat with the bot; null when there is no such address now */
              'url': string | null;
            })[];
          };
        } };
      };
    };
  };
  '/api/messengers/accounts': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': ({
              'channel': 'TELEGRAM' | 'VK';
              'linked_at': string;
            })[];
            /** Messengers that have a bot on this service */
            'bots': ('TELEGRAM' | 'VK')[];
          };
        } };
      };
    };
  };
  '/api/messengers/accounts/{channel}': {
    delete: {
      parameters: {
        path: {
          'channel': 'TELEGRAM' | 'VK';
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/messengers/telegram': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': Record<string, unknown>;
      } };
      responses: Refused<400 | 401 | 404 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': Record<string, never>;
        } };
      };
    };
  };
  '/api/messengers/vk': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'type': string;
          'secret'?: string;
          'group_id': unknown;
        } & Record<string, unknown>;
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'text/plain': unknown;
        } };
      };
    };
  };
  '/api/admin/outbox': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only entries in this state */
          'state'?: 'pending' | 'processed' | 'dead' | 'requeued' | 'discarded';
          /** Only entries that name this entity, as type:id */
          'key'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['OutboxEntry'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
            'pending': number;
            /** How many of the pending have failed before, and are tried again later */
            'backing_off': number;
            'dead': number;
            /** Age of what waits longest */
            'oldest_pending_seconds': number | null;
            /** From commit to the store, of what was delivered in the last five minutes */
            'lag_ms': {
              'p50': number;
              'p99': number;
            } | null;
            'paused': components['schemas']['StreamPause'] | null;
            'paused_until': string | null;
            'last_error': string | null;
            'last_delivered_id': number;
            /** What the newest comparison of the graph store with the database found; null when none was made */
            'last_comparison': {
              'at': string;
              'missing_count': number;
              'extra_count': number;
              'repaired': boolean;
            } | null;
          };
        } };
      };
    };
  };
  '/api/admin/outbox/{entry}': {
    get: {
      parameters: {
        path: {
          /** Id of the outbox entry */
          'entry': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['OutboxEntry'];
        } };
      };
    };
  };
  '/api/admin/outbox/{entry}/retry': {
    post: {
      parameters: {
        path: {
          /** Id of the outbox entry */
          'entry': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'entry': number;
            /** Entry it goes on under; null when nothing is left to deliver */
            'requeued_as': number | null;
            'delivered': boolean;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'entry': number;
            /** Entry it goes on under; null when nothing is left to deliver */
            'requeued_as': number | null;
            'delivered': boolean;
          };
        } };
      };
    };
  };
  '/api/admin/outbox/{entry}/discard': {
    post: {
      parameters: {
        path: {
          /** Id of the outbox entry */
          'entry': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'entry': number;
            'discarded': true;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'entry': number;
            'discarded': true;
          };
        } };
      };
    };
  };
  '/api/auth/sessions': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Session'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/auth/sessions/{session}': {
    delete: {
      parameters: {
        path: {
          /** Id of the session */
          'session': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/auth/check': {
    get: {
      parameters: {};
      responses: Refused<400 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UserLoginCheck'];
        } };
      };
    };
  };
  '/api/auth/logout': {
    post: {
      parameters: {};
      responses: Refused<400 | 403 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/auth/tokens': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['UserToken'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
    post: {
      parameters: {
        header?: {
          /** A key of this request alone. The same request with the same key is refused with 409 and the id of what was made. */
          'Idempotency-Key'?: string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'name': string;
          /** When the token ends; null for never */
          'expires_at'?: string | null;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the token that is no secret */
            'public': string;
            'created_at': string;
            'expires_at': string | null;
            'last_used_at': string | null;
            /** The credential: Authorization: Bearer <token> */
            'token': string;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the token that is no secret */
            'public': string;
            'created_at': string;
            'expires_at': string | null;
            'last_used_at': string | null;
            /** The credential: Authorization: Bearer <token> */
            'token': string;
          };
        } };
      };
    };
  };
  '/api/auth/tokens/{token}': {
    delete: {
      parameters: {
        path: {
          /** Id of the token */
          'token': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/plugins/{id}/files': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only of this user */
          'user'?: number;
          /** Only files in this state */
          'state'?: 'pending' | 'ready';
        };
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['PluginFile'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
            /** All files of the plugin */
            'usage': components['schemas']['FileUsage'];
            /** Those with most bytes */
            'owners': ({
              'files': number;
              /** How many of them are not complete */
              'pending': number;
              'bytes': number;
              /** The user; null for the plugin itself */
              'user_id': number | null;
            })[];
          };
        } };
      };
    };
  };
  '/api/admin/files': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only the file with this id */
          'file'?: string;
          /** Only files of this plugin */
          'plugin'?: string;
          /** Only of this user */
          'user'?: number;
          /** Only files in this state */
          'state'?: 'pending' | 'ready';
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['AnyFile'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
            /** All files of all plugins */
            'usage': components['schemas']['FileUsage'];
            /** The 20 with most bytes */
            'plugins': {
              'files': number;
              /** How many of them are not complete */
              'pending': number;
              'bytes': number;
              'plugin_id': string;
            }[];
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/files/{file}': {
    delete: {
      parameters: {
        path: {
          'id': string;
          'file': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/auth/plugin-session/start': {
    get: {
      parameters: {
        query?: {
          /** Path to go back to; the home page for everything else */
          'return_to'?: string;
        };
      };
      responses: Refused<400 | 404 | 422 | 500 | 503> & {
        302: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/auth/plugin-session': {
    get: {
      parameters: {
        query?: {
          /** Id of the plugin */
          'plugin'?: string;
          /** Hash of the secret the browser keeps, 64 hexadecimal digits */
          'state'?: string;
          /** Path to go back to; the home page for everything else */
          'return_to'?: string;
        };
      };
      responses: Refused<400 | 403 | 404 | 422 | 500> & {
        302: { headers: Record<string, unknown>; content?: never };
        503: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.draining'] | components['schemas']['Problem.unavailable'];
          'text/html': unknown;
        } };
      };
    };
  };
  '/api/auth/plugin-session/finish': {
    get: {
      parameters: {
        query?: {
          /** The code */
          'code'?: string;
          /** Path to go back to; the home page for everything else */
          'return_to'?: string;
        };
      };
      responses: Refused<400 | 404 | 422 | 500 | 503> & {
        302: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/plugins/upload': {
    post: {
      parameters: {};
      requestBody: { content: {
        'multipart/form-data': FormData;
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Upload'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Upload'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/versions/{key}': {
    get: {
      parameters: {
        path: {
          'id': string;
          'key': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Upload'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/versions/{key}/module': {
    get: {
      parameters: {
        path: {
          'id': string;
          'key': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/wasm': unknown;
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/versions/{key}/frontend': {
    put: {
      parameters: {
        path: {
          'id': string;
          'key': string;
        };
      };
      requestBody: { content: {
        'multipart/form-data': FormData;
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['PluginVersion'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['PluginVersion'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/frontend': {
    put: {
      parameters: {
        header?: {
          /** The ETag of the plugin. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** session: for logged-in users alone */
          'access': 'public' | 'session';
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Plugin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Plugin'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/html': {
    put: {
      parameters: {
        header?: {
          /** The ETag of the plugin. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** Whether answers of HTTP triggers that can run script go out without a sandbox */
          'trust': 'trusted' | 'sandboxed';
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Plugin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Plugin'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/install': {
    post: {
      parameters: {
        header?: {
          /** The ETag of the plugin. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** The wasm_key of an uploaded version */
          'wasm_key': string;
          /** Values of the config fields, and the sections databases and network; what is left out stays as it is */
          'config'?: Record<string, unknown>;
          /** Permissions the installed version does not have: all of them, or these */
          'accept_permissions'?: true | string[];
          /** Settings by the name of the trigger */
          'triggers'?: Record<string, {
            'enabled'?: boolean;
            /** Whether logged-in users may call */
            'allow_user_session'?: boolean;
            /** Whether service keys may call */
            'allow_service_key'?: boolean;
            /** A policy that callers must meet as well; empty for none */
            'policy_expression'?: string;
            /** Origins of pages that may call; null for those of the plugin's own setting */
            'frontend_origins'?: string[] | null;
            /** Whether executions are recorded, to run them again with plugin replay */
            'record'?: boolean;
          }>;
          /** New triggers start with the access that the manifest suggests */
          'accept_suggested_access'?: boolean;
          /** Confirms that triggers become callable without a login: all that the change opens, or those of these names */
          'accept_public'?: boolean | string[];
          /** Confirms what else an upgrade widens: all that `widens` in the review names, or of it "frontend", "html" and "policy:NAME" of triggers without what protected those before them */
          'accept_widening'?: boolean | string[];
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Installation'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Installation'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/rollback': {
    post: {
      parameters: {
        header?: {
          /** The ETag of the plugin. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** The wasm_key of an uploaded version */
          'wasm_key': string;
          /** Confirms that triggers become callable without a login: all that the change opens, or those of these names */
          'accept_public'?: boolean | string[];
          /** Confirms what else an upgrade widens: all that `widens` in the review names, or of it "frontend", "html" and "policy:NAME" of triggers without what protected those before them */
          'accept_widening'?: boolean | string[];
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Installation'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Installation'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/disable': {
    post: {
      parameters: {
        header?: {
          /** The ETag of the plugin. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 412 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Plugin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Plugin'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/enable': {
    post: {
      parameters: {
        header?: {
          /** The ETag of the plugin. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 412 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Plugin'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Plugin'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}': {
    delete: {
      parameters: {
        header?: {
          /** The ETag of the plugin. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 412 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
    get: {
      parameters: {
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['Plugin'];
        } };
        304: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/plugins': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Part of the id or of the name */
          'search'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['ListedPlugin'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/versions': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['PluginVersion'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/policies/check': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'expression': string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'valid': boolean;
            'type': 'bool' | null;
            'errors': components['schemas']['PolicyProblem'][];
            'warnings': components['schemas']['PolicyWarning'][];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'valid': boolean;
            'type': 'bool' | null;
            'errors': components['schemas']['PolicyProblem'][];
            'warnings': components['schemas']['PolicyWarning'][];
          };
        } };
      };
    };
  };
  '/api/admin/policies/compare': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          /** The policy as it is; empty for none */
          'before': string;
          /** The policy as it would be; empty for none */
          'after': string;
          /** How many users this part looks at */
          'limit'?: number;
          /** The next_cursor of the part before */
          'cursor'?: string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** How many users there are */
            'users': number;
            /** Users of this part for whom both policies were decided */
            'examined': number;
            /** Users of this part for whom the graph did not answer */
            'undecided': number;
            'gains': components['schemas']['PolicySubject'][];
            'loses': components['schemas']['PolicySubject'][];
            /** Cursor of the next part; null after the last one */
            'next_cursor': string | null;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** How many users there are */
            'users': number;
            /** Users of this part for whom both policies were decided */
            'examined': number;
            /** Users of this part for whom the graph did not answer */
            'undecided': number;
            'gains': components['schemas']['PolicySubject'][];
            'loses': components['schemas']['PolicySubject'][];
            /** Cursor of the next part; null after the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/policies/rehearse': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'plugin': string;
          /** Name of the trigger or the command */
          'trigger': string;
          /** The policy as it would be; empty for none */
          'expression': string;
          'days'?: number;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Recorded calls that were decided again */
            'calls': number;
            'callers': number;
            /** Callers that are not there any more, or could not be decided */
            'undecided': number;
            /** Calls that were refused, and would have been let in */
            'would_admit': components['schemas']['DecidedOtherwise'];
            /** Calls that were let in, and would have been refused */
            'would_refuse': components['schemas']['DecidedOtherwise'];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Recorded calls that were decided again */
            'calls': number;
            'callers': number;
            /** Callers that are not there any more, or could not be decided */
            'undecided': number;
            /** Calls that were refused, and would have been let in */
            'would_admit': components['schemas']['DecidedOtherwise'];
            /** Calls that were let in, and would have been refused */
            'would_refuse': components['schemas']['DecidedOtherwise'];
          };
        } };
      };
    };
  };
  '/api/admin/policies/try': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'expression': string;
          /** Id of the user */
          'user': number;
          /** Attributes as policies name them, instead of the user's own */
          'attributes'?: {
            'external_id'?: string;
            'groups'?: string[];
            'roles'?: string[];
            'primary_channel'?: 'TELEGRAM' | 'VK' | '';
            'locale'?: 'ru' | 'en';
            'nationality_type'?: 'domestic' | 'foreign' | '';
            'funding_type'?: 'budget' | 'contract' | '';
            'education_form'?: 'full_time' | 'part_time' | 'remote' | '';
          };
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['PolicyTrial'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['PolicyTrial'];
        } };
      };
    };
  };
  '/api/admin/relationships': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          'resource_type'?: string;
          'resource_id'?: string;
          'relation'?: string;
          'subject_type'?: string;
          'subject_id'?: string;
          /** Only relationships of this origin */
          'origin'?: 'import' | 'manual';
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Relationship'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
    post: {
      parameters: {
        header?: {
          /** A key of this request alone. The same request with the same key gets the same answer for 24 hours. */
          'Idempotency-Key'?: string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'relationships': {
            'resource_type': string;
            'resource_id': string;
            'relation': string;
            'subject_type'?: string;
            'subject_id': string;
          }[];
        } | {
          'resource_type': string;
          'resource_id': string;
          'relation': string;
          'subject_type'?: string;
          'subject_id': string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': {
            'relationships': ({
              'resource_type': string;
              'resource_id': string;
              'relation': string;
              'subject_type': string;
              'subject_id': string;
              'subject_relation'?: string;
              /** An import takes away only what an import brought */
              'origin': 'import' | 'manual';
            })[];
            'outbox_id': number;
            /** Whether the graph store has the change already; otherwise the change is still on its way */
            'delivered': boolean;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'relationships': ({
              'resource_type': string;
              'resource_id': string;
              'relation': string;
              'subject_type': string;
              'subject_id': string;
              'subject_relation'?: string;
              /** An import takes away only what an import brought */
              'origin': 'import' | 'manual';
            })[];
            'outbox_id': number;
            /** Whether the graph store has the change already; otherwise the change is still on its way */
            'delivered': boolean;
          };
        } };
      };
    };
    delete: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'filter': {
            'resource_type'?: string;
            'resource_id'?: string;
            'relation'?: string;
            'subject_type'?: string;
            'subject_id'?: string;
            'origin'?: 'import' | 'manual';
          };
        } | {
          'resource_type': string;
          'resource_id': string;
          'relation': string;
          'subject_type'?: string;
          'subject_id': string;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'deleted': number;
            /** Null when there was nothing to do */
            'outbox_id': number | null;
            /** Whether the graph store has the change already; otherwise the change is still on its way */
            'delivered': boolean;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'deleted': number;
            /** Null when there was nothing to do */
            'outbox_id': number | null;
            /** Whether the graph store has the change already; otherwise the change is still on its way */
            'delivered': boolean;
          };
        } };
      };
    };
  };
  '/api/admin/relationships/lookup': {
    get: {
      parameters: {
        query: {
          /** Type of the object */
          'resource_type': string;
          /** Id of the object */
          'resource_id'?: string;
          /** Name of a permission or relation of the type */
          'permission': string;
          /** External id of the user */
          'user'?: string;
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'allowed': boolean;
            /** From the question to the relationship; empty when it is not allowed */
            'path': string[];
            'steps': components['schemas']['CheckStep'];
          } | {
            'items': {
              'resource_type': string;
              'resource_id': string;
            }[];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          } | {
            'items': {
              'user': string;
            }[];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/relationships/objects': {
    get: {
      parameters: {
        query: {
          /** Type of the objects */
          'type': string;
          /** Part of the name, or how the id begins */
          'search'?: string;
          /** Only these: a JSON array of at most 200 ids */
          'ids'?: string;
          /** How many items a page has at most */
          'limit'?: number;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['GraphObject'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/roles': {
    get: {
      parameters: {
        query?: {
          /** database: roles that policies ask for with has_role; the others are those that commands ask for */
          'kind'?: 'database' | 'system' | 'global' | 'plugin';
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Role'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/roles/{role}/users': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** database: roles that policies ask for with has_role; the others are those that commands ask for */
          'kind'?: 'database' | 'system' | 'global' | 'plugin';
          /** Id of the plugin whose role it is; of the kind plugin alone */
          'plugin'?: string;
        };
        path: {
          'role': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['RoleHolder'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/service-keys': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['ServiceKey'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
    post: {
      parameters: {
        header?: {
          /** A key of this request alone. The same request with the same key is refused with 409 and the id of what was made. */
          'Idempotency-Key'?: string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'name': string;
          'scopes': {
            'plugin_id': string;
            /** Name of a trigger, or "*" for all, also of later versions */
            'trigger'?: string;
          }[];
          'expires_at'?: string | null;
          /** Whether scopes may name plugins and triggers that are not installed yet */
          'allow_unknown'?: boolean;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the key that is no secret */
            'public': string;
            'scopes': {
              'plugin_id': string;
              'trigger': string;
            }[];
            'created_at': string;
            'rotated_at': string | null;
            /** Until when the secret before the last rotation is valid */
            'old_secret_until': string | null;
            'expires_at': string | null;
            'last_used_at': string | null;
            /** The credential: Authorization: Bearer <key> */
            'key': string;
            'warnings': components['schemas']['Warning'][];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the key that is no secret */
            'public': string;
            'scopes': {
              'plugin_id': string;
              'trigger': string;
            }[];
            'created_at': string;
            'rotated_at': string | null;
            /** Until when the secret before the last rotation is valid */
            'old_secret_until': string | null;
            'expires_at': string | null;
            'last_used_at': string | null;
            /** The credential: Authorization: Bearer <key> */
            'key': string;
            'warnings': components['schemas']['Warning'][];
          };
        } };
      };
    };
  };
  '/api/admin/service-keys/{key}': {
    get: {
      parameters: {
        path: {
          /** Id of the service key */
          'key': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ServiceKey'];
        } };
      };
    };
    delete: {
      parameters: {
        path: {
          /** Id of the service key */
          'key': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/service-keys/{key}/rotate': {
    post: {
      parameters: {
        header?: {
          /** A key of this request alone. The same request with the same key is refused with 409 and the id of what was made. */
          'Idempotency-Key'?: string;
        };
        path: {
          /** Id of the service key */
          'key': number;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** How long the old secret stays valid; 0 without it */
          'overlap_seconds'?: number;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the key that is no secret */
            'public': string;
            'scopes': {
              'plugin_id': string;
              'trigger': string;
            }[];
            'created_at': string;
            'rotated_at': string | null;
            /** Until when the secret before the last rotation is valid */
            'old_secret_until': string | null;
            'expires_at': string | null;
            'last_used_at': string | null;
            /** The credential: Authorization: Bearer <key> */
            'key': string;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'id': number;
            'name': string;
            /** The part of the key that is no secret */
            'public': string;
            'scopes': {
              'plugin_id': string;
              'trigger': string;
            }[];
            'created_at': string;
            'rotated_at': string | null;
            /** Until when the secret before the last rotation is valid */
            'old_secret_until': string | null;
            'expires_at': string | null;
            'last_used_at': string | null;
            /** The credential: Authorization: Bearer <key> */
            'key': string;
          };
        } };
      };
    };
  };
  '/api/admin/support-bundle': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/gzip': unknown;
        } };
      };
    };
  };
  '/api/admin/suspensions': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': ({
              /** Null for the whole plugin */
              'trigger': string | null;
              /** The version that crashed the service; null for suspensions of triggers */
              'version_id': number | null;
              /** The caller for whom a trigger is suspended; null for all callers */
              'caller': string | null;
              /** Callers whose executions failed */
              'callers': number;
              'since': string;
              /** Null until an administrator resumes it */
              'until': string | null;
              /** How the last execution failed; version_crashed: the version was running when the service crashed */
              'reason': 'trapped' | 'deadline' | 'crashed' | 'version_crashed';
              /** What the last failed execution of a trigger said */
              'failure': string | null;
              /** The version that was running in the crashes */
              'version': string | null;
              /** The crashes of the service it was running in */
              'crashes': {
                /** The signal that ended the process, or V8 for a fatal error of the engine */
                'signal': string;
                /** When, as ISO 8601 */
                'at': string;
                /** Whether the process was killed for lack of memory */
                'out_of_memory': boolean;
              }[];
              /** All of this as a sentence in English */
              'cause': string;
              'plugin_id': string;
            })[];
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/triggers': {
    get: {
      parameters: {
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['TriggerSettings'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/triggers/{name}/settings': {
    get: {
      parameters: {
        path: {
          'id': string;
          'name': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['TriggerSettings'];
        } };
        304: { headers: Record<string, unknown>; content?: never };
      };
    };
    put: {
      parameters: {
        header?: {
          /** The ETag of the settings. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
          'name': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'enabled'?: boolean;
          /** Whether logged-in users may call */
          'allow_user_session'?: boolean;
          /** Whether service keys may call */
          'allow_service_key'?: boolean;
          /** A policy that callers must meet as well; empty for none */
          'policy_expression'?: string;
          /** Origins of pages that may call; null for those of the plugin's own setting */
          'frontend_origins'?: string[] | null;
          /** Whether executions are recorded, to run them again with plugin replay */
          'record'?: boolean;
          /** Confirms that triggers become callable without a login: all that the change opens, or those of these names */
          'accept_public'?: boolean | string[];
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedTriggerSettings'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedTriggerSettings'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/triggers/{name}/policy/revisions': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
        path: {
          'id': string;
          'name': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['PolicyRevision'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/triggers/{name}/policy/revisions/{revision}/restore': {
    post: {
      parameters: {
        header?: {
          /** The ETag of the settings. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
          'name': string;
          /** Id of the revision */
          'revision': number;
        };
      };
      requestBody?: { content: {
        'application/json': {
          /** Confirms that triggers become callable without a login: all that the change opens, or those of these names */
          'accept_public'?: boolean | string[];
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedTriggerSettings'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ChangedTriggerSettings'];
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/origins': {
    put: {
      parameters: {
        header?: {
          /** The ETag of the plugin. When it was changed meanwhile, the change is refused with 412. */
          'If-Match'?: string;
        };
        path: {
          'id': string;
        };
      };
      requestBody: { content: {
        'application/json': {
          'origins': string[];
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 412 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Id of the plugin */
            'plugin_id': string;
            'origins': string[];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Id of the plugin */
            'plugin_id': string;
            'origins': string[];
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/triggers/{name}/resume': {
    post: {
      parameters: {
        path: {
          'id': string;
          'name': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Id of the plugin */
            'plugin_id': string;
            /** Name of the HTTP trigger */
            'trigger': string;
            /** Whether anything was suspended */
            'resumed': boolean;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Id of the plugin */
            'plugin_id': string;
            /** Name of the HTTP trigger */
            'trigger': string;
            /** Whether anything was suspended */
            'resumed': boolean;
          };
        } };
      };
    };
  };
  '/api/admin/plugins/{id}/resume': {
    post: {
      parameters: {
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Id of the plugin */
            'plugin_id': string;
            /** Whether anything was suspended */
            'resumed': boolean;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Id of the plugin */
            'plugin_id': string;
            /** Whether anything was suspended */
            'resumed': boolean;
          };
        } };
      };
    };
  };
  '/api/admin/uninstalled': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['UninstalledVersion'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/uninstalled/{key}/restore': {
    post: {
      parameters: {
        path: {
          'key': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Id of the plugin */
            'id': string;
            /** Version as its author calls it */
            'version': string;
            /** Names this version at installing and rolling back */
            'wasm_key': string;
            'permissions': string[];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Id of the plugin */
            'id': string;
            /** Version as its author calls it */
            'version': string;
            /** Names this version at installing and rolling back */
            'wasm_key': string;
            'permissions': string[];
          };
        } };
      };
    };
  };
  '/api/admin/university/persons': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'last_name': string;
          'first_name': string;
          'middle_name'?: string | null;
          'name_i18n'?: {
            'ru'?: string;
            'en'?: string;
          } & Record<string, unknown> | null;
          'email'?: string | null;
          'phone'?: string | null;
          'locale'?: 'ru' | 'en' | null;
          'nationality_type'?: 'domestic' | 'foreign' | null;
          'citizenship'?: string | null;
          'idp_account_id'?: string | null;
          'primary_channel'?: 'TELEGRAM' | 'VK' | null;
          'channels'?: ({
            'channel': 'TELEGRAM' | 'VK';
            'external_id': string;
          } & Record<string, unknown>)[] | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/courses': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'name': string;
          'name_i18n'?: {
            'ru'?: string;
            'en'?: string;
          } & Record<string, unknown> | null;
          'code'?: string | null;
          'description'?: string | null;
          'credits'?: number | null;
          'hours'?: number | null;
          'department_external_id'?: string | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/semesters': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'name': string;
          'name_i18n'?: {
            'ru'?: string;
            'en'?: string;
          } & Record<string, unknown> | null;
          'academic_year': string;
          'kind'?: 'autumn' | 'spring' | 'summer' | null;
          'start_date': string;
          'end_date': string;
          'is_current'?: boolean | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/faculties': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'name': string;
          'name_i18n'?: {
            'ru'?: string;
            'en'?: string;
          } & Record<string, unknown> | null;
          'short_name'?: string | null;
          'code'?: string | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/departments': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'name': string;
          'name_i18n'?: {
            'ru'?: string;
            'en'?: string;
          } & Record<string, unknown> | null;
          'faculty_external_id': string;
          'short_name'?: string | null;
          'code'?: string | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/programs': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'name': string;
          'name_i18n'?: {
            'ru'?: string;
            'en'?: string;
          } & Record<string, unknown> | null;
          'department_external_id': string;
          'code'?: string | null;
          'degree'?: string | null;
          'education_form'?: 'full_time' | 'part_time' | 'remote' | null;
          'duration_years'?: number | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/streams': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'name': string;
          'name_i18n'?: {
            'ru'?: string;
            'en'?: string;
          } & Record<string, unknown> | null;
          'program_external_id': string;
          'admission_year'?: number | null;
          'study_year'?: number | null;
          'is_foreign'?: boolean | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/groups': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'name': string;
          'name_i18n'?: {
            'ru'?: string;
            'en'?: string;
          } & Record<string, unknown> | null;
          'stream_external_id': string;
          'admission_year'?: number | null;
          'language'?: string | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/subgroups': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'name': string;
          'name_i18n'?: {
            'ru'?: string;
            'en'?: string;
          } & Record<string, unknown> | null;
          'group_external_id': string;
          'kind'?: string | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/teacher-positions': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'person_external_id': string;
          'department_external_id': string;
          'title': string;
          'rate'?: number | null;
          'is_primary'?: boolean | null;
          'start_date'?: string | null;
          'end_date'?: string | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/student-positions': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'person_external_id': string;
          'group_external_id': string;
          'record_book'?: string | null;
          'status'?: 'studying' | 'leave' | 'expelled' | 'graduated' | null;
          'funding_type'?: 'budget' | 'contract' | null;
          'education_form'?: 'full_time' | 'part_time' | 'remote' | null;
          'start_date'?: string | null;
          'end_date'?: string | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/student-subgroups': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'person_external_id': string;
          'subgroup_external_id': string;
          'semester_external_id'?: string | null;
          'start_date'?: string | null;
          'end_date'?: string | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/teaching-assignments': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'person_external_id': string;
          'stream_external_id': string;
          'course_external_id': string;
          'semester_external_id': string;
          'kind'?: 'lecture' | 'seminar' | 'lab' | null;
          'audience'?: 'all' | 'foreign' | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/admin-appointments': {
    post: {
      parameters: {
        query?: {
          /** Report what would happen and write nothing */
          'dry_run'?: '1' | '0' | 'true' | 'false';
        };
      };
      requestBody: { content: {
        'application/json': ({
          'external_id': string;
          'is_active'?: boolean | null;
          'updated_at'?: unknown;
          'metadata'?: unknown;
          'person_external_id': string;
          'object_type': 'faculty' | 'department' | 'program' | 'stream' | 'group';
          'object_external_id': string;
          'role': 'dean' | 'head' | 'director' | 'curator' | 'staff';
          'start_date'?: string | null;
          'end_date'?: string | null;
        } & Record<string, unknown>)[];
      } };
      responses: Refused<400 | 401 | 403 | 408 | 413 | 415 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        206: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['BatchResult'];
        } };
        422: { headers: Record<string, unknown>; content: {
          'application/problem+json': components['schemas']['Problem.validation_failed'];
          'application/json': components['schemas']['BatchResult'];
        } };
      };
    };
  };
  '/api/admin/university/pull': {
    post: {
      parameters: {
        query?: {
          /** Answer when the pull has ended */
          'wait'?: '1' | '0' | 'true' | 'false';
        };
        header?: {
          /** A key of this request alone. The same request with the same key gets the same answer for 24 hours. */
          'Idempotency-Key'?: string;
        };
      };
      requestBody?: { content: {
        'application/json': {
          /** Types that may lose more than a fifth of their records in this pull */
          'release_brake'?: string[];
          /** Most records each of these types may lose; with more the brake stops it again */
          'ending_max'?: number;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ImportRun'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ImportRun'];
        } };
      };
    };
  };
  '/api/admin/university/imports': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Only batches, or only pulls */
          'kind'?: 'batch' | 'pull';
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['ImportRun'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/university/imports.csv': {
    get: {
      parameters: {
        query?: {
          /** Only batches, or only pulls */
          'kind'?: 'batch' | 'pull';
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'text/csv': unknown;
        } };
      };
    };
  };
  '/api/admin/university/imports/{id}': {
    get: {
      parameters: {
        path: {
          /** Id of the import */
          'id': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['ImportRun'];
        } };
      };
    };
  };
  '/api/admin/university/imports/{id}/errors': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
        path: {
          /** Id of the import */
          'id': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': ({
              /** Place in the list, from 0 */
              'index': number;
              'external_id': string | null;
              /** Path of the field in the record; null for the record as a whole */
              'field': string | null;
              'code': 'not_an_object' | 'missing' | 'invalid' | 'unknown_reference' | 'duplicate' | 'conflict';
              'message': string;
              'type': 'person' | 'course' | 'semester' | 'faculty' | 'department' | 'program' | 'stream' | 'group' | 'subgroup' | 'teacher_position' | 'student_position' | 'student_subgroup' | 'teaching_assignment' | 'admin_appointment';
            })[];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/university/imports/{id}/errors.csv': {
    get: {
      parameters: {
        path: {
          /** Id of the import */
          'id': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'text/csv': unknown;
        } };
      };
    };
  };
  '/api/admin/university/imports/{id}/ending/{type}': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
        path: {
          /** Id of the import */
          'id': number;
          'type': 'person' | 'course' | 'semester' | 'faculty' | 'department' | 'program' | 'stream' | 'group' | 'subgroup' | 'teacher_position' | 'student_position' | 'student_subgroup' | 'teaching_assignment' | 'admin_appointment';
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['EndingRecord'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/university/types': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['UniversityType'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/university/types/{type}/columns': {
    put: {
      parameters: {
        path: {
          'type': 'person' | 'course' | 'semester' | 'faculty' | 'department' | 'program' | 'stream' | 'group' | 'subgroup' | 'teacher_position' | 'student_position' | 'student_subgroup' | 'teaching_assignment' | 'admin_appointment';
        };
      };
      requestBody: { content: {
        'application/json': {
          /** Columns of files that have other names than the fields: the field of each; null where it is left out */
          'columns': Record<string, string | null>;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Columns of files that have other names than the fields: the field of each; null where it is left out */
            'columns': Record<string, string | null>;
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            /** Columns of files that have other names than the fields: the field of each; null where it is left out */
            'columns': Record<string, string | null>;
          };
        } };
      };
    };
  };
  '/api/admin/university/source': {
    get: {
      parameters: {};
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UniversitySource'];
        } };
      };
    };
  };
  '/api/files/init': {
    post: {
      parameters: {};
      requestBody: { content: {
        'application/json': {
          'plugin_id': string;
          /** A plain file name */
          'name': string;
          'mime_type': string;
          /** Bytes */
          'size': number;
          /** What the file is to a messenger or a page; "document" goes with every MIME type */
          'file_type': 'photo' | 'document' | 'audio' | 'video' | 'voice' | 'sticker';
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 413 | 415 | 422 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['AnnouncedFile'];
        } };
      };
    };
  };
  '/api/files/{id}/complete': {
    post: {
      parameters: {
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 410 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['FileRef'];
        } };
      };
    };
  };
  '/api/files/{id}': {
    delete: {
      parameters: {
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/files/{id}/content': {
    put: {
      parameters: {
        query?: {
          /** End of the address, in seconds since 1970 */
          'expires'?: string;
          /** Announced size */
          'size'?: string;
          /** Announced MIME type */
          'type'?: string;
          /** Signature of the address */
          'signature'?: string;
        };
        path: {
          'id': string;
        };
      };
      requestBody: { content: {
        '*/*': unknown;
      } };
      responses: Refused<400 | 403 | 404 | 408 | 409 | 410 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content?: never };
      };
    };
    get: {
      parameters: {
        query?: {
          /** End of the address, in seconds since 1970 */
          'expires'?: string;
          /** Signature of the address */
          'signature'?: string;
        };
        path: {
          'id': string;
        };
      };
      responses: Refused<400 | 403 | 404 | 410 | 416 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
        206: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
        304: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/users/{user}/messenger-accounts': {
    get: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': ({
              'channel': 'TELEGRAM' | 'VK';
              'linked_at': string;
            })[];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/users/{user}/messenger-accounts/{channel}': {
    delete: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
          'channel': 'TELEGRAM' | 'VK';
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/users/{user}/roles': {
    get: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['UserRole'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/users/{user}/roles/{kind}/{role}': {
    put: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
          'kind': 'database' | 'system' | 'global';
          /** Letters, digits, _ . : and - */
          'role': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UserRoleChange'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UserRoleChange'];
        } };
      };
    };
    delete: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
          'kind': 'database' | 'system' | 'global';
          /** Letters, digits, _ . : and - */
          'role': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UserRoleChange'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UserRoleChange'];
        } };
      };
    };
  };
  '/api/admin/users/{user}/roles/plugin/{plugin}/{role}': {
    put: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
          'plugin': string;
          /** Letters, digits, _ . : and - */
          'role': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UserRoleChange'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UserRoleChange'];
        } };
      };
    };
    delete: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
          'plugin': string;
          /** Letters, digits, _ . : and - */
          'role': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 409 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UserRoleChange'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['UserRoleChange'];
        } };
      };
    };
  };
  '/api/admin/users/{user}/sessions': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['Session'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/users/{user}/sessions/{session}': {
    delete: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
          /** Id of the session */
          'session': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/users/{user}/tokens': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
        };
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['UserToken'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
  };
  '/api/admin/users/{user}/tokens/{token}': {
    delete: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
          /** Id of the token */
          'token': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503 | 507> & {
        202: { headers: Record<string, unknown>; content?: never };
        204: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/admin/users': {
    get: {
      parameters: {
        query?: {
          /** How many items a page has at most */
          'limit'?: number;
          /** The next_cursor of the page before */
          'cursor'?: string;
          /** Part of the name or email, or a whole id; of ids of ours as user:7 */
          'search'?: string;
        };
      };
      responses: Refused<400 | 401 | 403 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'items': components['schemas']['User'][];
            /** Cursor of the next page; null on the last one */
            'next_cursor': string | null;
          };
        } };
      };
    };
    post: {
      parameters: {
        header?: {
          /** A key of this request alone. The same request with the same key gets the same answer for 24 hours. */
          'Idempotency-Key'?: string;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** Id in the university system, by which the graph knows the user */
          'external_id'?: string | null;
          /** Id of the account at the identity provider */
          'idp_accounts_id'?: string | null;
          'display_name'?: string;
          'primary_channel'?: 'TELEGRAM' | 'VK' | null;
          'locale'?: 'ru' | 'en';
          'nationality_type'?: 'domestic' | 'foreign' | null;
          'funding_type'?: 'budget' | 'contract' | null;
          'education_form'?: 'full_time' | 'part_time' | 'remote' | null;
        };
      } };
      responses: Refused<400 | 401 | 403 | 408 | 409 | 413 | 415 | 422 | 429 | 500 | 503 | 507> & {
        201: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['User'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['User'];
        } };
      };
    };
  };
  '/api/admin/users/{user}': {
    get: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['User'];
        } };
      };
    };
    patch: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** Id in the university system, by which the graph knows the user */
          'external_id'?: string | null;
          /** Id of the account at the identity provider */
          'idp_accounts_id'?: string | null;
          'display_name'?: string;
          'primary_channel'?: 'TELEGRAM' | 'VK' | null;
          'locale'?: 'ru' | 'en';
          'nationality_type'?: 'domestic' | 'foreign' | null;
          'funding_type'?: 'budget' | 'contract' | null;
          'education_form'?: 'full_time' | 'part_time' | 'remote' | null;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['User'];
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': components['schemas']['User'];
        } };
      };
    };
  };
  '/api/admin/users/{user}/university': {
    get: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 422 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'person': {
              'email': string | null;
              'phone': string | null;
              /** Whether the last import had the person */
              'is_active': boolean;
            } | null;
            'positions': components['schemas']['UserPosition'][];
          };
        } };
      };
    };
  };
  '/api/admin/users/{user}/export': {
    get: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': Record<string, unknown>;
        } };
      };
    };
  };
  '/api/admin/users/{user}/erase': {
    post: {
      parameters: {
        path: {
          /** Id of the user */
          'user': number;
        };
      };
      requestBody: { content: {
        'application/json': {
          /** Says that it is meant */
          'erase': true;
        };
      } };
      responses: Refused<400 | 401 | 403 | 404 | 408 | 409 | 413 | 415 | 422 | 500 | 503 | 507> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'removed': {
              'what': string;
              'count': number;
            }[];
            /** What stays, and for how long */
            'remarks': string[];
          };
        } };
        202: { headers: Record<string, unknown>; content: {
          'application/json': {
            'removed': {
              'what': string;
              'count': number;
            }[];
            /** What stays, and for how long */
            'remarks': string[];
          };
        } };
      };
    };
  };
  '/api/openapi.json': {
    get: {
      parameters: {};
      responses: Refused<400 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'application/json': {
            'openapi': string;
          } & Record<string, unknown>;
        } };
        304: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/docs': {
    get: {
      parameters: {};
      responses: Refused<400 | 500 | 503> & {
        200: { headers: Record<string, unknown>; content: {
          'text/html': unknown;
        } };
        304: { headers: Record<string, unknown>; content?: never };
      };
    };
  };
  '/api/triggers/http/{plugin_id}/{path}': {
    get: {
      parameters: {
        path: {
          'plugin_id': string;
          /** The path of the trigger; it may have several segments */
          'path': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 405 | 408 | 413 | 500 | 502 | 503 | 504> & {
        200: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
        default: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
      };
    };
    post: {
      parameters: {
        path: {
          'plugin_id': string;
          /** The path of the trigger; it may have several segments */
          'path': string;
        };
      };
      requestBody?: { content: {
        '*/*': unknown;
      } };
      responses: Refused<400 | 401 | 403 | 404 | 405 | 408 | 413 | 500 | 502 | 503 | 504> & {
        200: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
        default: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
      };
    };
    put: {
      parameters: {
        path: {
          'plugin_id': string;
          /** The path of the trigger; it may have several segments */
          'path': string;
        };
      };
      requestBody?: { content: {
        '*/*': unknown;
      } };
      responses: Refused<400 | 401 | 403 | 404 | 405 | 408 | 413 | 500 | 502 | 503 | 504> & {
        200: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
        default: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
      };
    };
    patch: {
      parameters: {
        path: {
          'plugin_id': string;
          /** The path of the trigger; it may have several segments */
          'path': string;
        };
      };
      requestBody?: { content: {
        '*/*': unknown;
      } };
      responses: Refused<400 | 401 | 403 | 404 | 405 | 408 | 413 | 500 | 502 | 503 | 504> & {
        200: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
        default: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
      };
    };
    delete: {
      parameters: {
        path: {
          'plugin_id': string;
          /** The path of the trigger; it may have several segments */
          'path': string;
        };
      };
      responses: Refused<400 | 401 | 403 | 404 | 405 | 408 | 413 | 500 | 502 | 503 | 504> & {
        200: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
        default: { headers: Record<string, unknown>; content: {
          '*/*': unknown;
        } };
      };
    };
  };
}

export interface components {
  schemas: {
    'ProblemPlace': {
      /** JSON pointer (RFC 6901) into the body, or query:name, or path:name */
      'pointer': string;
      'message': string;
      /** What kind of mistake it is */
      'code': 'missing' | 'wrong_type' | 'too_short' | 'too_long' | 'too_few_bytes' | 'too_many_bytes' | 'list_too_short' | 'list_too_long' | 'too_small' | 'too_large' | 'not_one_of' | 'malformed' | 'unknown_field' | 'not_found' | 'taken' | 'in_use' | 'does_not_fit' | 'too_common' | 'wrong_secret' | 'unchanged' | 'not_public' | 'not_accepted' | 'refused';
      /** The bound that was passed, in what the code counts */
      'limit'?: number;
    };
    'ProblemDetails': {
      'type': string;
      'title': string;
      'detail': string;
      /** Path of the request */
      'instance': string;
      'request_id': string;
      /** The same text as detail */
      'error': string;
      /** Each place that is wrong; 20 at most */
      'errors': components['schemas']['ProblemPlace'][];
      /** How many there are, when some are left out */
      'errors_total'?: number;
    };
    'Problem.malformed_request': components['schemas']['ProblemDetails'] & {
      'code': 'malformed_request';
      'status': 400;
    };
    'Problem.unauthorized': components['schemas']['ProblemDetails'] & {
      'code': 'unauthorized';
      'status': 401;
      /** How many more answers the second half of a login takes */
      'attempts_left'?: number;
    };
    'Problem.forbidden': components['schemas']['ProblemDetails'] & ({
      'code': 'forbidden';
      'status': 403;
      /** Scopes of which an administration key needs one */
      'missing_scopes'?: string[];
      /** Roles of which an administrator needs one */
      'sufficient_roles'?: ('auditor' | 'operator' | 'plugin_manager' | 'access_manager' | 'owner')[];
    });
    'Problem.not_found': components['schemas']['ProblemDetails'] & {
      'code': 'not_found';
      'status': 404;
    };
    'Problem.method_not_allowed': components['schemas']['ProblemDetails'] & {
      'code': 'method_not_allowed';
      'status': 405;
    };
    'Problem.request_timeout': components['schemas']['ProblemDetails'] & {
      'code': 'request_timeout';
      'status': 408;
    };
    'Problem.conflict': components['schemas']['ProblemDetails'] & ({
      'code': 'conflict';
      'status': 409;
      /** What a repeated request had made */
      'id'?: number | string | null;
      /** What was asked for is being done already */
      'reason'?: 'under_way';
    });
    'Problem.not_uploaded': components['schemas']['ProblemDetails'] & {
      'code': 'not_uploaded';
      'status': 409;
    };
    'Problem.upload_mismatch': components['schemas']['ProblemDetails'] & {
      'code': 'upload_mismatch';
      'status': 409;
    };
    'Problem.expired': components['schemas']['ProblemDetails'] & {
      'code': 'expired';
      'status': 410;
    };
    'Problem.quota_exceeded': components['schemas']['ProblemDetails'] & {
      'code': 'quota_exceeded';
      'status': 413;
      /** Name of the limit */
      'limit': string;
      'limit_value': number;
      /** How much is used already */
      'used'?: number;
    };
    'Problem.range_not_satisfiable': components['schemas']['ProblemDetails'] & {
      'code': 'range_not_satisfiable';
      'status': 416;
    };
    'PasskeyUseOptions': {
      'challenge': string;
      'rpId'?: string;
      'timeout'?: number;
      'allowCredentials'?: {
        'id': string;
        'type': string;
        'transports'?: string[];
      }[];
      'userVerification'?: 'discouraged' | 'preferred' | 'required';
    } & Record<string, unknown>;
    'Problem.second_factor_required': components['schemas']['ProblemDetails'] & ({
      'code': 'second_factor_required';
      'status': 401;
      /** Names this question in POST /api/admin/auth/login/second-factor */
      'continuation': string;
      /** What the account has */
      'methods': ('passkey' | 'totp' | 'recovery_code')[];
      /** What navigator.credentials.get takes as publicKey, as JSON; null without a passkey for this host name */
      'passkey_options': components['schemas']['PasskeyUseOptions'] | null;
    });
    'Problem.second_factor_setup_required': components['schemas']['ProblemDetails'] & {
      'code': 'second_factor_setup_required';
      'status': 403;
    };
    'Problem.password_change_required': components['schemas']['ProblemDetails'] & {
      'code': 'password_change_required';
      'status': 403;
    };
    'Problem.password_confirmation_required': components['schemas']['ProblemDetails'] & ({
      'code': 'password_confirmation_required';
      'status': 403;
      /** Where the password is given again; GET: a login at the identity provider */
      'confirm': {
        'method': 'GET' | 'POST';
        'path': string;
      };
    });
    'Problem.page_proof_required': components['schemas']['ProblemDetails'] & {
      'code': 'page_proof_required';
      'status': 403;
    };
    'Problem.too_many_attempts': components['schemas']['ProblemDetails'] & {
      'code': 'too_many_attempts';
      'status': 429;
    };
    'Problem.permissions_not_accepted': components['schemas']['ProblemDetails'] & {
      'code': 'permissions_not_accepted';
      'status': 409;
      /** Permissions the installed version does not have */
      'new_permissions': string[];
    };
    'Widening': {
      /** permission, network, database: rights; frontend, html: script on this origin; policy, public: who may call */
      'kind': 'permission' | 'network' | 'database' | 'frontend' | 'html' | 'policy' | 'public';
      /** The permission, the database or the trigger; empty where the kind says it all */
      'name': string;
      'message': string;
    };
    'Problem.confirmation_required': components['schemas']['ProblemDetails'] & {
      'code': 'confirmation_required';
      'status': 409;
      /** What would be open without a login */
      'becomes_public': {
        'trigger': string;
        'methods': string[];
        'url': string;
      }[];
      /** What else an installation would widen */
      'widens': components['schemas']['Widening'][];
    };
    'Problem.body_too_large': components['schemas']['ProblemDetails'] & {
      'code': 'body_too_large';
      'status': 413;
    };
    'Problem.unsupported_media_type': components['schemas']['ProblemDetails'] & {
      'code': 'unsupported_media_type';
      'status': 415;
    };
    'Problem.precondition_failed': components['schemas']['ProblemDetails'] & {
      'code': 'precondition_failed';
      'status': 412;
      /** Members that changed since they were read */
      'changed': string[];
    };
    'PolicyPosition': {
      /** Characters before it */
      'start': number;
      /** Characters before what follows it */
      'end': number;
      'line': number;
      'column': number;
    };
    'Problem.validation_failed': components['schemas']['ProblemDetails'] & {
      'code': 'validation_failed';
      'status': 422;
      /** The first mistake in a policy */
      'position'?: components['schemas']['PolicyPosition'];
    };
    'Problem.idempotency_key_reused': components['schemas']['ProblemDetails'] & {
      'code': 'idempotency_key_reused';
      'status': 422;
    };
    'Finding': {
      'level': 'refusal' | 'warning' | 'note';
      'rule': string;
      'message': string;
      'where'?: string;
    };
    'Problem.module_refused': components['schemas']['ProblemDetails'] & {
      'code': 'module_refused';
      'status': 422;
      'findings': components['schemas']['Finding'][];
    };
    'Problem.frontend_refused': components['schemas']['ProblemDetails'] & {
      'code': 'frontend_refused';
      'status': 422;
    };
    'Problem.internal': components['schemas']['ProblemDetails'] & {
      'code': 'internal';
      'status': 500;
    };
    'Problem.plugin_trapped': components['schemas']['ProblemDetails'] & {
      'code': 'plugin_trapped';
      'status': 502;
    };
    'Problem.plugin_error': components['schemas']['ProblemDetails'] & {
      'code': 'plugin_error';
      'status': 502;
    };
    'Problem.plugin_response_invalid': components['schemas']['ProblemDetails'] & {
      'code': 'plugin_response_invalid';
      'status': 502;
    };
    'Problem.plugin_quota_exceeded': components['schemas']['ProblemDetails'] & {
      'code': 'plugin_quota_exceeded';
      'status': 502;
    };
    'Problem.no_slot': components['schemas']['ProblemDetails'] & {
      'code': 'no_slot';
      'status': 503;
    };
    'Problem.memory_budget': components['schemas']['ProblemDetails'] & {
      'code': 'memory_budget';
      'status': 503;
    };
    'Problem.quarantined': components['schemas']['ProblemDetails'] & {
      'code': 'quarantined';
      'status': 503;
    };
    'Problem.draining': components['schemas']['ProblemDetails'] & {
      'code': 'draining';
      'status': 503;
    };
    'Problem.unavailable': components['schemas']['ProblemDetails'] & {
      'code': 'unavailable';
      'status': 503;
      /** Name of the limit that is reached */
      'limit'?: string;
    };
    'Problem.deadline_exceeded': components['schemas']['ProblemDetails'] & {
      'code': 'deadline_exceeded';
      'status': 504;
    };
    'Problem.storage_full': components['schemas']['ProblemDetails'] & {
      'code': 'storage_full';
      'status': 507;
    };
    'AccessExplanation': {
      'user': {
        'id': number;
        'external_id': string | null;
        'display_name': string;
      };
      'plugin': string;
      'trigger'?: string;
      'command'?: string;
      'allowed': boolean;
      /** The HTTP status the caller gets */
      'status': number;
      /** Everything that has to hold, in order; the first that does not decides */
      'steps': ({
        /** What had to hold */
        'code': 'plugin_installed' | 'plugin_enabled' | 'trigger_exists' | 'trigger_enabled' | 'user_sessions_accepted' | 'not_suspended' | 'command_exists' | 'command_enabled' | 'roles' | 'role' | 'policy';
        /** The role that a command asks for */
        'role': {
          'kind': 'system' | 'global' | 'plugin';
          'role': string;
        } | null;
        'step': string;
        /** Null: not looked at, because a step before does not hold */
        'holds': boolean | null;
        'detail': string;
      })[];
      /** What would let the user in */
      'to_change': string[];
      /** What suspends the trigger for this user */
      'suspension': components['schemas']['Suspension'] | null;
      'policy': {
        'verdict': 'allowed' | 'denied' | 'failed' | 'unavailable';
        'reason': string | null;
        'graph_rounds': number;
        'graph_checks': {
          'check': string;
          'allowed': boolean;
          'ms': number;
        }[];
        'context_age_ms': number | null;
        'expression': string;
      } | null;
    };
    'Suspension': {
      /** Null for the whole plugin */
      'trigger': string | null;
      /** The version that crashed the service; null for suspensions of triggers */
      'version_id': number | null;
      /** The caller for whom a trigger is suspended; null for all callers */
      'caller': string | null;
      /** Callers whose executions failed */
      'callers': number;
      'since': string;
      /** Null until an administrator resumes it */
      'until': string | null;
      /** How the last execution failed; version_crashed: the version was running when the service crashed */
      'reason': 'trapped' | 'deadline' | 'crashed' | 'version_crashed';
      /** What the last failed execution of a trigger said */
      'failure': string | null;
      /** The version that was running in the crashes */
      'version': string | null;
      /** The crashes of the service it was running in */
      'crashes': {
        /** The signal that ended the process, or V8 for a fatal error of the engine */
        'signal': string;
        /** When, as ISO 8601 */
        'at': string;
        /** Whether the process was killed for lack of memory */
        'out_of_memory': boolean;
      }[];
      /** All of this as a sentence in English */
      'cause': string;
    };
    'ActivitySum': {
      /** Executions that ended */
      'requests': number;
      /** Those that ended without an answer of the plugin, or with a status of 500 and above */
      'failed': number;
      /** How long half of them took at most, the wait for a slot included */
      'p50_ms': number | null;
      'p95_ms': number | null;
      'p99_ms': number | null;
      /** Execution slots in use on average */
      'slots': number;
    };
    'ActivityPoint': {
      'at': string;
      /** Executions that ended */
      'requests': number;
      /** Those that ended without an answer of the plugin, or with a status of 500 and above */
      'failed': number;
      /** How long half of them took at most, the wait for a slot included */
      'p50_ms': number | null;
      'p95_ms': number | null;
      'p99_ms': number | null;
      /** Execution slots in use on average */
      'slots': number;
    };
    'Attention': {
      'kind': 'suspended' | 'outbox_dead' | 'outbox_late' | 'graph_differs' | 'events_undelivered' | 'mails_unsent' | 'host_silent' | 'config_wrong' | 'config_changed' | 'check_failed' | 'import_stopped' | 'import_broken' | 'import_failed' | 'messages_uncertain' | 'messages_failed';
      /** bad: it does not work; warn: it works late or in part */
      'severity': 'bad' | 'warn';
      'count': number;
      /** The only plugin it is about */
      'plugin': string | null;
      /** Of check_failed the check, as /readyz names it, or mail, telegram, vk */
      'check'?: string;
      /** The import that did not go well */
      'import'?: number;
      /** What a list that was sent holds */
      'type'?: 'person' | 'course' | 'semester' | 'faculty' | 'department' | 'program' | 'stream' | 'group' | 'subgroup' | 'teacher_position' | 'student_position' | 'student_subgroup' | 'teaching_assignment' | 'admin_appointment';
      /** What it is, in words of the service */
      'detail': string | null;
      'since': string | null;
    };
    'AdminKey': {
      'id': number;
      'name': string;
      /** The part of the key that is no secret */
      'public': string;
      'scopes': string[];
      /** Id of the administrator who made it */
      'made_by': number;
      'created_at': string;
      'expires_at': string | null;
      'last_used_at': string | null;
      'rotated_at': string | null;
      /** Until when the secret before the last rotation is valid */
      'old_secret_until': string | null;
    };
    'AdminLogin': {
      'admin': components['schemas']['CurrentAdmin'];
      /** Value of the header X-Page-Proof, which requests of browsers need */
      'page_proof': string;
    };
    'CurrentAdmin': {
      'global_user_id': number;
      'email': string;
      /** Whether the password is a temporary one that opens nothing else */
      'must_change_password': boolean;
      /** Whether a second factor must be added before anything else */
      'must_add_second_factor': boolean;
      'roles': ('auditor' | 'operator' | 'plugin_manager' | 'access_manager' | 'owner')[];
      /** What the roles open; admin includes the others, and owners may do more */
      'scopes': string[];
    };
    'AdminLoginCheck': {
      /** Also true while there is no administrator */
      'authenticated': boolean;
      /** Whether the first administrator has to be made */
      'setup_mode': boolean;
      /** Whether users may log in with an identity provider */
      'idp': boolean;
      /** What the administrator who has logged in last with this browser may log in with instead of the password */
      'passwordless': ('passkey' | 'recovery_code')[];
      /** For a session: whether this request lacks the header X-Page-Proof */
      'page_proof_required'?: boolean;
      /** Whose session it is, unless the request lacks the header */
      'admin'?: components['schemas']['CurrentAdmin'];
    };
    'PasswordlessLogin': {
      /** Names this login in the answer; valid for five minutes */
      'continuation': string;
      /** What is taken instead of the password */
      'methods': ('passkey' | 'recovery_code')[];
      /** What navigator.credentials.get takes as publicKey, as JSON; null without a passkey */
      'passkey_options': components['schemas']['PasskeyUseOptions'] | null;
    };
    'PasswordlessAdmin': {
      'admin': components['schemas']['CurrentAdmin'];
    };
    'SecondFactor': {
      /** Whether administrators need a second factor (admin.second_factor) */
      'required': boolean;
      'passkeys': components['schemas']['Passkey'][];
      /** Why passkeys do not work at this address */
      'passkey_problem': string | null;
      /** Since when codes of an authenticator app count */
      'totp_since': string | null;
      /** How many are left */
      'recovery_codes': number;
    };
    'Passkey': {
      'id': number;
      'name': string;
      /** The host name it was made for, the only one it works on */
      'host': string;
      /** Whether that is the host name of this request */
      'is_usable': boolean;
      'created_at': string;
      'last_used_at': string | null;
    };
    'PasskeyCreationOptions': {
      'challenge': string;
      'rp': {
        'id'?: string;
        'name': string;
      };
      'user': {
        'id': string;
        'name': string;
        'displayName': string;
      };
      'pubKeyCredParams': {
        'type': 'public-key';
        'alg': number;
      }[];
      'timeout'?: number;
      'excludeCredentials'?: {
        'id': string;
        'type': string;
        'transports'?: string[];
      }[];
      'authenticatorSelection'?: {
        'residentKey'?: 'discouraged' | 'preferred' | 'required';
        'requireResidentKey'?: boolean;
        'userVerification'?: 'discouraged' | 'preferred' | 'required';
      };
    } & Record<string, unknown>;
    'AdminAccount': {
      'global_user_id': number;
      'email': string;
      'must_change_password': boolean;
      /** Until when the temporary password is valid */
      'temporary_until': string | null;
      'created_at': string;
      /** What the administrator may do; GET /api/admin/admins/roles says what each includes */
      'roles': ('auditor' | 'operator' | 'plugin_manager' | 'access_manager' | 'owner')[];
      /** The plugins a plugin manager may manage; null for all of them */
      'plugins': string[] | null;
      /** Whether a login needs a passkey or a code besides the password */
      'has_second_factor': boolean;
      /** What became of the mail with the last temporary password */
      'mail': {
        'state': 'pending' | 'sent' | 'failed';
        'error': string | null;
        'at': string | null;
      } | null;
    };
    'AuditEntry': {
      'id': number;
      'at': string;
      'actor': {
        'kind': 'admin' | 'admin_key' | 'import_key' | 'user' | 'anonymous' | 'setup' | 'command_line';
        /** The user; of an administration key the administrator who made it */
        'global_user_id': number | null;
        'admin_key_id'?: number;
        'name': string;
      };
      /** What was done, for example trigger.settings */
      'action': string;
      'object_type': string;
      'object_id': string;
      /** The object before the change; never a secret. Null for a person, to callers who may not read people */
      'before': Record<string, unknown> | null;
      /** The object after the change */
      'after': Record<string, unknown> | null;
      'request_id': string | null;
      /** Address of the client */
      'address': string | null;
    };
    'CommandSettings': {
      /** Id of the plugin */
      'plugin_id': string;
      /** The word users write */
      'command': string;
      'description': string;
      'enabled': boolean;
      /** Empty for no policy */
      'policy_expression': string;
      /** Null: no such role is asked for */
      'system_role': string | null;
      'global_roles': string[];
      'plugin_role': string | null;
      /** Whether executions are recorded, so that `plugin replay` can run them again */
      'record': boolean;
      /** Why the policy denies every user; empty when it is evaluated */
      'policy_problems': components['schemas']['PolicyProblem'][];
      /** Whether it is enabled and asks for no role and no policy */
      'open_to_everyone': boolean;
    };
    'PolicyProblem': {
      'message': string;
      'position': components['schemas']['PolicyPosition'];
    };
    'ChangedCommandSettings': {
      /** Id of the plugin */
      'plugin_id': string;
      /** The word users write */
      'command': string;
      'description': string;
      'enabled': boolean;
      /** Empty for no policy */
      'policy_expression': string;
      /** Null: no such role is asked for */
      'system_role': string | null;
      'global_roles': string[];
      'plugin_role': string | null;
      /** Whether executions are recorded, so that `plugin replay` can run them again */
      'record': boolean;
      /** Why the policy denies every user; empty when it is evaluated */
      'policy_problems': components['schemas']['PolicyProblem'][];
      /** Whether it is enabled and asks for no role and no policy */
      'open_to_everyone': boolean;
      /** Roles that no user has */
      'warnings': (components['schemas']['PolicyWarning'] | components['schemas']['Warning'])[];
    };
    'PolicyWarning': {
      'pointer': string;
      'message': string;
      'position': components['schemas']['PolicyPosition'];
    };
    'Warning': {
      'pointer': string;
      'message': string;
    };
    'PolicyRevision': {
      'id': number;
      /** The policy; empty where it was removed */
      'expression': string;
      'author_user_id': number | null;
      'author': string;
      'at': string;
    };
    'ConfigSetting': {
      'key': string;
      /** What is in force; null for a secret, which is never shown */
      'value': string | number | boolean | string[] | null;
      /** What it is when nothing sets it; null for a secret */
      'default': string | number | boolean | string[] | null;
      'is_secret': boolean;
      /** Whether it has a value; for a secret all that is said of it */
      'is_set': boolean;
      /** Where it comes from; start: the service found it out when it started, for example a free port */
      'source': 'default' | 'file' | 'credential' | 'env' | 'start';
      /** Environment variable that sets it */
      'env': string;
      'about': string;
    };
    'PendingConfig': {
      /** Keys with another value */
      'changed': string[];
      /** Those of them that only a restart can apply; a reload is refused meanwhile */
      'restart': string[];
      /** A mistake for which a reload and the next start would fail */
      'problem': string | null;
    };
    'DoctorCheck': {
      /** What was looked at */
      'name': string;
      /** warn: it works, and something will be missed */
      'state': 'ok' | 'warn' | 'failed';
      /** What was found, and what helps */
      'detail': string;
    };
    'ConnectionTrial': {
      'ok': true;
      'latency_ms': number;
      'server_version': string;
      'database': string;
      'user': string;
      /** What an administrator should think about */
      'warnings': string[];
    } | {
      'ok': false;
      'latency_ms': number;
      'error': components['schemas']['ConnectionFailure'];
    };
    'ConnectionFailure': {
      /** SQLSTATE, or the error code of the system */
      'code': string;
      'message': string;
    };
    'Drift': {
      /** In the database and not in the store, like faculty:f1#dean@user:e1; the first 1000 */
      'missing': string[];
      'missing_count': number;
      /** In the store and not in the database; the first 1000 */
      'extra': string[];
      'extra_count': number;
      /** Relationships of the database that were compared */
      'compared': number;
      /** Differences left out, because a change of them still waits for delivery */
      'pending': number;
      /** Whether the store was changed to what the database holds */
      'repaired': boolean;
    };
    'EventSubscription': {
      'id': number;
      'name': string;
      /** Without its query to callers who may not change it */
      'url': string;
      'types': string[];
      'plugins': string[];
      'enabled': boolean;
      /** Why the service switched it off; empty where it did not */
      'disabled_why': string;
      /** How many, by state */
      'deliveries': {
        'waiting': number;
        'delivered': number;
        'dead': number;
      };
      'created_at': string;
      'updated_at': string;
    };
    'EventDelivery': {
      'event_id': string;
      /** Number of the event */
      'number': number;
      'plugin_id': string;
      'type': string;
      'state': 'waiting' | 'delivered' | 'dead';
      'attempts': number;
      /** While it waits */
      'next_attempt_at': string | null;
      /** Status the subscriber answered last; null when it did not answer */
      'last_status': number | null;
      'last_error': string;
      'ended_at': string | null;
    };
    'EventTrial': {
      'ok': boolean;
      'latency_ms': number;
      /** Status the subscriber answered; null when it was not reached */
      'status': number | null;
      /** Why it counts as failed */
      'problem': string | null;
    };
    'Event': {
      'id': string;
      /** Numbers grow; the cursor of the list and of the stream */
      'number': number;
      'plugin_id': string;
      'type': string;
      'request_id': string;
      'at': string;
      /** JSON as the plugin published it; its numbers may be larger than those of JavaScript */
      'data': unknown;
    };
    'Execution': {
      'id': number;
      'request_id': string;
      /** Trace id of the caller (W3C trace context) */
      'trace_id': string | null;
      'plugin_id': string;
      'version': string;
      'trigger': string;
      /** Who called: user:<id>, service:<id> or public */
      'principal': string;
      'outcome': 'ok' | 'handler_error' | 'trapped' | 'exited' | 'invalid_response' | 'quota' | 'load_failed' | 'no_slot' | 'queue_full' | 'deadline' | 'memory_budget' | 'crashed' | 'draining' | 'refused';
      /** The HTTP status the caller got; 0 where there was none */
      'status': number;
      'started_at': string;
      'queue_wait_ms': number;
      'run_ms': number;
      'host_calls': number;
      /** Most memory it had, in pages of 64 KiB */
      'peak_pages': number;
      'failure': string | null;
      'log_lines': number;
    };
    'RecordedDecision': {
      /** What decided; policy: it was false */
      'reason': 'open' | 'allowed' | 'disabled' | 'unknown_user' | 'roles' | 'policy' | 'policy_failed' | 'unavailable';
      /** Why a policy failed, or what was unavailable */
      'detail': string | null;
      /** The roles that a command asked for */
      'roles': ({
        'kind': 'system' | 'global' | 'plugin';
        'role': string;
        'held': boolean;
      })[];
      /** What the policy said, with all it asked; null if it was not evaluated */
      'policy': {
        'verdict': 'allowed' | 'denied' | 'failed' | 'unavailable';
        'reason': string | null;
        'graph_rounds': number;
        'graph_checks': {
          'check': string;
          'allowed': boolean;
          'ms': number;
        }[];
        'context_age_ms': number | null;
      } | null;
    };
    'Recording': {
      'format': 1;
      'plugin_id': string;
      'version': string;
      /** Of the module that ran, as it was uploaded */
      'module_sha256'?: string;
      'trigger': string;
      /** The event, as JSON text */
      'event': string;
      'body': components['schemas']['RecordedValue'] | null;
      /** The configuration; secrets are hidden */
      'config': Record<string, string>;
      'calls': ({
        'function': string;
        'arguments': components['schemas']['RecordedValue'][];
        /** Below zero an error */
        'code': number;
        'data': components['schemas']['RecordedValue'] | null;
        'body': components['schemas']['RecordedValue'] | null;
      })[];
      /** Readings of clocks and random bytes, in the order they were drawn (base64) */
      'drawn'?: string;
      'outcome': {
        'kind': string;
        'failure': string;
        'status': number;
        /** Names and values, each followed by NUL */
        'headers': string;
        'body': components['schemas']['RecordedValue'];
      };
    };
    'RecordedValue': number | string | {
      'base64': string;
    } | {
      'int64': string;
    };
    'GalleryPlugin': {
      /** Id of the plugin */
      'id': string;
      'name': string;
      /** What it is for, in one sentence */
      'summary': string;
      /** What it is written in */
      'language': string;
      /** Null when no plugin of this id is installed */
      'installed_version': string | null;
    };
    'Upload': {
      /** Names this version at installing and rolling back */
      'wasm_key': string;
      /** Version of the plugin interface it is written for */
      'abi': number;
      /** SHA-256 of the file as it was uploaded, in hexadecimal digits */
      'sha256': string;
      /** Bytes of the module as it was uploaded */
      'size': number;
      /** Pages of 64 KiB that the module may have */
      'memory_pages': {
        'min': number;
        'max': number;
      };
      /** When it was installed last; null for never */
      'installed_at': string | null;
      /** Id of the plugin, from its manifest */
      'id': string;
      'name': string;
      /** Version as its author calls it */
      'version': string;
      'requirements': components['schemas']['Requirement'][];
      'triggers': (components['schemas']['HttpTrigger'] | components['schemas']['MessengerTrigger'])[];
      /** Who may call each HTTP trigger if the version is installed as it is */
      'access': components['schemas']['TriggerReview'][];
      'permissions': string[];
      /** Those the installed version does not have */
      'new_permissions': string[];
      /** What it widens if it is installed as it is; an upgrade wants frontend, html and policy confirmed */
      'widens': components['schemas']['Widening'][];
      'installed_version': string | null;
      /** Whether this very module and frontend are what is installed */
      'is_installed': boolean;
      'frontend': components['schemas']['PluginFrontend'] | null;
      'signature': components['schemas']['ModuleSignature'];
      'findings': components['schemas']['Finding'][];
      /** What to know of its pages before installing it */
      'notices': components['schemas']['UploadNotice'][];
    };
    'Requirement': {
      /** What the plugin asks for; each is a permission */
      'kind': 'sql' | 'kv' | 'network' | 'notify' | 'events' | 'plugins:call' | 'file';
      /** What it is for; shown to the administrator */
      'description': string;
      /** Logical name of the database; only for sql */
      'name'?: string;
      /** Id of the plugin to call; only for plugins:call */
      'target'?: string;
      /** Values that the administrator fills in */
      'config': {
        'type': 'string';
        /** Name by which the plugin reads the value */
        'name': string;
        /** What it is for; shown to the administrator */
        'description': string;
        /** Without a value the plugin cannot be installed */
        'required': boolean;
        /** A secret: stored encrypted, and never shown again */
        'sensitive': boolean;
      }[];
    };
    'HttpTrigger': {
      /** Name of the trigger, once in a plugin; for a messenger trigger the word of the command */
      'name': string;
      'type': 'http';
      /** What it does; shown to administrators */
      'description': string;
      /** Path below /api/triggers/http/<plugin id>, like /profile or /items/:id; empty for the root */
      'path': string;
      /** Methods it answers */
      'methods': ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[];
      /** Who should call it, as its author sees it */
      'access'?: {
        /** Users may call */
        'users': boolean;
        /** Programs with a service key may call */
        'service_keys': boolean;
        /** A CEL expression that must be true as well; empty for none */
        'policy': string;
        /** Every caller may call, without a login; then none of the others */
        'public': boolean;
        /** Why; shown to the administrator who decides */
        'reason': string;
      };
    };
    'MessengerTrigger': {
      /** Name of the trigger, once in a plugin; for a messenger trigger the word of the command */
      'name': string;
      'type': 'messenger';
      /** What it does; shown to administrators */
      'description': string;
    };
    'TriggerReview': {
      'trigger': string;
      'methods': ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[];
      /** Path at which it is called */
      'url': string;
      /** Whether no settings are stored for it, from this version or an earlier one */
      'new': boolean;
      'effective_access': components['schemas']['EffectiveAccess'];
      /** Whether a policy decides as well */
      'has_policy': boolean;
      /** What the author suggests instead; an installation follows it with accept_suggested_access */
      'suggested': {
        /** Users may call */
        'users': boolean;
        /** Programs with a service key may call */
        'service_keys': boolean;
        /** A CEL expression that must be true as well; empty for none */
        'policy': string;
        /** Every caller may call, without a login; then none of the others */
        'public': boolean;
        /** Why; shown to the administrator who decides */
        'reason': string;
        'effective_access': components['schemas']['EffectiveAccess'];
        /** Why the suggested policy could not be saved */
        'policy_problems': components['schemas']['PolicyProblem'][];
      } | null;
    };
    'EffectiveAccess': 'disabled' | 'public' | 'nobody' | 'user' | 'service' | 'user_or_service';
    'PluginFrontend': {
      /** SHA-256 of the file as it was uploaded, in hexadecimal digits */
      'sha256': string;
      'packed_bytes': number;
      'files': number;
      'bytes': number;
    };
    'ModuleSignature': {
      /** trusted: by a key of plugins.trusted_keys; unknown: by another key; wrong: the bytes are others */
      'state': 'none' | 'trusted' | 'unknown' | 'wrong';
      /** Id of the key, as minisign prints it */
      'key_id': string | null;
      /** Name of the key in plugins.trusted_keys */
      'signer': string | null;
      /** What the signer wrote with it */
      'comment': string | null;
    };
    'UploadNotice': {
      'code': 'html_sandboxed' | 'frontend_trusted';
      'message': string;
    };
    'GraphDefinition': {
      'name': string;
      'relations': {
        'name': string;
        /** Types its subjects may have */
        'subjects': string[];
      }[];
      'permissions': {
        'name': string;
        'expression': string;
      }[];
    };
    'HealthCheck': {
      'name': string;
      'state': 'ok' | 'degraded' | 'failed';
      /** What is missing */
      'detail': string | null;
    };
    'Host': {
      'id': string;
      /** Name of the machine */
      'name': string;
      /** Where it listens */
      'address': string;
      /** silent: it has written nothing for five seconds; draining: it is about to end */
      'state': 'serving' | 'draining' | 'silent';
      /** Releases of its processes; two while it is upgraded */
      'versions': string[];
      'started_at': string;
      'seen_at': string;
      /** Work that one host at a time does, and this one does now */
      'duties': string[];
      'processes': components['schemas']['HostProcess'][];
    };
    'HostProcess': {
      'pid': number;
      'version': string;
      'started_at': string;
      'seen_at': string;
      'state': 'serving' | 'draining' | 'silent';
      /** Work that one host at a time does, and this one does now */
      'duties': string[];
      'load': {
        'executions_in_flight': number;
        /** Threads that run plugins */
        'lanes': number;
        /** Open connections of clients */
        'connections': number;
        'resident_bytes': number;
        /** Processors it uses, 1 being a whole one */
        'cpu': number;
      };
    };
    'JobQueue': {
      'name': string;
      /** Jobs that may run now */
      'waiting': number;
      /** Jobs whose time has not come, or that are tried again later */
      'deferred': number;
      'active': number;
      /** Jobs that failed for the last time within the last day */
      'failed': number;
      'oldest_waiting_seconds': number | null;
      /** What the last failed job said, of those tried again too */
      'last_error': string | null;
      'last_completed_at': string | null;
    };
    'MailTrial': {
      'ok': true;
      'latency_ms': number;
      /** Mail server that took it over, or the file it was written to */
      'where': string;
    } | {
      'ok': false;
      'latency_ms': number;
      /** What the mail server said */
      'error': string;
    };
    'Message': {
      'id': number;
      'channel': 'TELEGRAM' | 'VK';
      'chat_id': string;
      /** Plugin that sends it; null for the service itself */
      'plugin_id': string | null;
      /** What it belongs to */
      'source': 'reply' | 'notify_user' | 'notify_chat' | 'notify_students' | 'host';
      'user_id': number | null;
      'message': {
        'text': string;
        'files': {
          'id': string;
          'caption': string;
        }[];
      };
      'request_id': string;
      /** uncertain: it may have arrived */
      'state': 'queued' | 'sending' | 'sent' | 'failed' | 'uncertain';
      /** A message with files is sent in several parts */
      'parts_sent': number;
      'attempts': number;
      /** While it is queued */
      'next_attempt_at': string | null;
      'last_error': string;
      'created_at': string;
      'ended_at': string | null;
    };
    'OutboxEntry': {
      'id': number;
      'operation': 'TOUCH' | 'DELETE' | 'DELETE_BY_OBJECT' | 'DELETE_BY_SUBJECT' | 'REPLACE';
      'state': 'pending' | 'processed' | 'dead' | 'requeued' | 'discarded';
      /** What it does to the graph: tuples, removed, and a filter */
      'payload': Record<string, unknown>;
      /** Every entity it names, as type:id; entries that share one keep their order */
      'keys': string[];
      'attempts': number;
      'last_error': string | null;
      /** Why the whole stream waits, for an entry that waits with it */
      'paused': components['schemas']['StreamPause'] | null;
      'created_at': string;
      'processed_at': string | null;
      'locked_until': string | null;
      'dead_at': string | null;
      /** What became of a dead entry */
      'resolution': 'requeued' | 'discarded' | null;
      'resolved_by': string | null;
      /** Id of the dead entry that goes on under this one */
      'requeue_of': number | null;
    };
    'StreamPause': {
      'since': string;
      /** Delivery is tried again then at the latest; null: all the time */
      'until': string | null;
      'reason': string;
    };
    'Session': {
      'id': number;
      /** admin: opens the admin API */
      'kind': 'user' | 'admin';
      'created_at': string;
      'last_used_at': string;
      'expires_at': string;
      /** Address of the client that logged in */
      'address': string;
      'user_agent': string;
      /** Whether this request was sent with it */
      'current': boolean;
    };
    'UserLoginCheck': {
      'authenticated': boolean;
      /** Whether users may log in with an identity provider */
      'idp': boolean;
      /** For a session: whether this request lacks the header X-Page-Proof */
      'page_proof_required'?: boolean;
      /** Whose session it is, unless the request lacks the header */
      'user'?: {
        'id': number;
        'display_name': string;
      };
    };
    'UserToken': {
      'id': number;
      'name': string;
      /** The part of the token that is no secret */
      'public': string;
      'created_at': string;
      'expires_at': string | null;
      'last_used_at': string | null;
    };
    'PluginFile': {
      'id': string;
      'name': string;
      'mime_type': string;
      /** Bytes */
      'size': number;
      'file_type': 'photo' | 'document' | 'audio' | 'video' | 'voice' | 'sticker';
      /** The user; null for the plugin itself */
      'user_id': number | null;
      /** What the user is called; null without a user or a name */
      'user_name': string | null;
      /** cancelled: deleted while its upload may still come in */
      'state': 'pending' | 'ready' | 'cancelled';
      'store': 'disk' | 's3';
      'created_at': string;
      'expires_at': string | null;
    };
    'FileUsage': {
      'files': number;
      /** How many of them are not complete */
      'pending': number;
      'bytes': number;
    };
    'AnyFile': {
      'id': string;
      'name': string;
      'mime_type': string;
      /** Bytes */
      'size': number;
      'file_type': 'photo' | 'document' | 'audio' | 'video' | 'voice' | 'sticker';
      /** The user; null for the plugin itself */
      'user_id': number | null;
      /** What the user is called; null without a user or a name */
      'user_name': string | null;
      /** cancelled: deleted while its upload may still come in */
      'state': 'pending' | 'ready' | 'cancelled';
      'store': 'disk' | 's3';
      'created_at': string;
      'expires_at': string | null;
      'plugin_id': string;
    };
    'PluginVersion': {
      /** Names this version at installing and rolling back */
      'wasm_key': string;
      /** Version as its author calls it */
      'version': string;
      /** Version of the plugin interface it is written for */
      'abi': number;
      /** SHA-256 of the file as it was uploaded, in hexadecimal digits */
      'sha256': string;
      /** Bytes of the module as it was uploaded */
      'size': number;
      'permissions': string[];
      /** Pages of 64 KiB that the module may have */
      'memory_pages': {
        'min': number;
        'max': number;
      };
      'uploaded_at': string;
      /** When it was installed last; null for never */
      'installed_at': string | null;
      /** Whether it is the version that runs */
      'installed': boolean;
      'frontend': components['schemas']['PluginFrontend'] | null;
      'signature': components['schemas']['ModuleSignature'];
    };
    'Plugin': {
      /** Id of the plugin */
      'id': string;
      /** From the manifest of the installed version; null without one */
      'name': string | null;
      'version': string | null;
      /** uploaded: no version is installed */
      'state': 'uploaded' | 'enabled' | 'disabled';
      /** Origins of pages that may call its triggers */
      'frontend_origins': string[];
      'html': {
        /** Whether answers of HTTP triggers that can run script go out without a sandbox */
        'trust': 'trusted' | 'sandboxed';
      };
      /** session: for logged-in users alone */
      'frontend_access': 'public' | 'session';
      /** Path of its pages; null without a frontend */
      'frontend_url': string | null;
      'created_at': string;
      'updated_at': string;
      'installed': components['schemas']['PluginVersion'] | null;
      'requirements': components['schemas']['Requirement'][];
      'permissions': string[];
      'config': components['schemas']['ConfigValue'][];
      /** Where it may send requests; null without that permission */
      'network': {
        /** The only hosts it may reach; empty: every public one */
        'hosts': string[];
        /** Ranges that are not public and may be reached all the same */
        'private': string[];
      } | null;
      'findings': components['schemas']['Finding'][];
      'triggers': ({
        /** Name of the trigger, once in a plugin; for a messenger trigger the word of the command */
        'name': string;
        'type': 'http';
        /** What it does; shown to administrators */
        'description': string;
        /** Path below /api/triggers/http/<plugin id>, like /profile or /items/:id; empty for the root */
        'path': string;
        /** Methods it answers */
        'methods': ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[];
        /** Who should call it, as its author sees it */
        'access'?: {
          /** Users may call */
          'users': boolean;
          /** Programs with a service key may call */
          'service_keys': boolean;
          /** A CEL expression that must be true as well; empty for none */
          'policy': string;
          /** Every caller may call, without a login; then none of the others */
          'public': boolean;
          /** Why; shown to the administrator who decides */
          'reason': string;
        };
        /** Absent while this host cannot read the plugin */
        'effective_access'?: components['schemas']['EffectiveAccess'];
      } | components['schemas']['MessengerTrigger'])[];
      /** What is suspended now */
      'quarantine': components['schemas']['Suspension'][];
      /** Ids of the installed plugins that may call it */
      'called_by': string[];
    };
    'ConfigValue': {
      'name': string;
      'description': string;
      'required': boolean;
      'sensitive': boolean;
      /** Whether it has a value, which of a sensitive field is not shown */
      'is_set': boolean;
      /** Null when not set; absent for sensitive fields */
      'value'?: string | null;
    };
    'Installation': {
      /** Id of the plugin */
      'id': string;
      /** From the manifest of the installed version; null without one */
      'name': string | null;
      'version': string | null;
      /** uploaded: no version is installed */
      'state': 'uploaded' | 'enabled' | 'disabled';
      /** Origins of pages that may call its triggers */
      'frontend_origins': string[];
      'html': {
        /** Whether answers of HTTP triggers that can run script go out without a sandbox */
        'trust': 'trusted' | 'sandboxed';
      };
      /** session: for logged-in users alone */
      'frontend_access': 'public' | 'session';
      /** Path of its pages; null without a frontend */
      'frontend_url': string | null;
      'created_at': string;
      'updated_at': string;
      'installed': components['schemas']['PluginVersion'] | null;
      'requirements': components['schemas']['Requirement'][];
      'permissions': string[];
      'config': components['schemas']['ConfigValue'][];
      /** Where it may send requests; null without that permission */
      'network': {
        /** The only hosts it may reach; empty: every public one */
        'hosts': string[];
        /** Ranges that are not public and may be reached all the same */
        'private': string[];
      } | null;
      'findings': components['schemas']['Finding'][];
      'triggers': ({
        /** Name of the trigger, once in a plugin; for a messenger trigger the word of the command */
        'name': string;
        'type': 'http';
        /** What it does; shown to administrators */
        'description': string;
        /** Path below /api/triggers/http/<plugin id>, like /profile or /items/:id; empty for the root */
        'path': string;
        /** Methods it answers */
        'methods': ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[];
        /** Who should call it, as its author sees it */
        'access'?: {
          /** Users may call */
          'users': boolean;
          /** Programs with a service key may call */
          'service_keys': boolean;
          /** A CEL expression that must be true as well; empty for none */
          'policy': string;
          /** Every caller may call, without a login; then none of the others */
          'public': boolean;
          /** Why; shown to the administrator who decides */
          'reason': string;
        };
        /** Absent while this host cannot read the plugin */
        'effective_access'?: components['schemas']['EffectiveAccess'];
      } | components['schemas']['MessengerTrigger'])[];
      /** What is suspended now */
      'quarantine': components['schemas']['Suspension'][];
      /** Ids of the installed plugins that may call it */
      'called_by': string[];
      'warnings': components['schemas']['PolicyWarning'][];
      'added_triggers': ({
        /** Name of the trigger, once in a plugin; for a messenger trigger the word of the command */
        'name': string;
        'type': 'http';
        /** What it does; shown to administrators */
        'description': string;
        /** Path below /api/triggers/http/<plugin id>, like /profile or /items/:id; empty for the root */
        'path': string;
        /** Methods it answers */
        'methods': ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[];
        /** Who should call it, as its author sees it */
        'access'?: {
          /** Users may call */
          'users': boolean;
          /** Programs with a service key may call */
          'service_keys': boolean;
          /** A CEL expression that must be true as well; empty for none */
          'policy': string;
          /** Every caller may call, without a login; then none of the others */
          'public': boolean;
          /** Why; shown to the administrator who decides */
          'reason': string;
        };
        /** Absent while this host cannot read the plugin */
        'effective_access'?: components['schemas']['EffectiveAccess'];
      } | components['schemas']['MessengerTrigger'])[];
      /** Names */
      'removed_triggers': string[];
    };
    'ListedPlugin': {
      /** Id of the plugin */
      'id': string;
      /** From the manifest of the installed version; null without one */
      'name': string | null;
      'version': string | null;
      /** uploaded: no version is installed */
      'state': 'uploaded' | 'enabled' | 'disabled';
      /** Origins of pages that may call its triggers */
      'frontend_origins': string[];
      'html': {
        /** Whether answers of HTTP triggers that can run script go out without a sandbox */
        'trust': 'trusted' | 'sandboxed';
      };
      /** session: for logged-in users alone */
      'frontend_access': 'public' | 'session';
      /** Path of its pages; null without a frontend */
      'frontend_url': string | null;
      'created_at': string;
      'updated_at': string;
      /** Executions that failed in the last 24 hours */
      'failed_24h': number;
      /** Whether it, or one of its triggers or commands, is suspended for all callers */
      'suspended': boolean;
    };
    'PolicySubject': {
      'id': number;
      'display_name': string;
      'external_id': string;
      /** Study groups */
      'groups': {
        'id': string;
        'name': string;
      }[];
    };
    'DecidedOtherwise': {
      'calls': number;
      'callers': number;
      /** Those with the most calls, 100 at most */
      'most': {
        /** user:<id>, service:<id> or public */
        'principal': string;
        'calls': number;
        'user'?: components['schemas']['PolicySubject'];
      }[];
    };
    'PolicyTrial': {
      /** Whether the policy is true for this user */
      'result': boolean;
      'verdict': 'allowed' | 'denied' | 'failed' | 'unavailable';
      /** Why it failed, or what is away */
      'reason': string | null;
      /** Where it failed */
      'position'?: components['schemas']['PolicyPosition'];
      'graph_rounds': number;
      'graph_checks': components['schemas']['GraphCheck'][];
      /** Every part of the policy by itself, outermost first */
      'parts': {
        'expression': string;
        'position': components['schemas']['PolicyPosition'];
        'value'?: unknown;
        'error'?: string;
        'not_needed'?: true;
      }[];
      'user': {
        'id': number;
        'external_id': string;
        /** Null when the graph does not answer */
        'groups': string[] | null;
        'roles': string[];
        'primary_channel': string;
        'locale': string;
        'nationality_type': string;
        'funding_type': string;
        'education_form': string;
      };
      'context_age_ms': number | null;
      'warnings': components['schemas']['PolicyWarning'][];
    };
    'GraphCheck': {
      'check': string;
      'allowed': boolean;
      'ms': number;
    };
    'Relationship': {
      'resource_type': string;
      'resource_id': string;
      'relation': string;
      'subject_type': string;
      'subject_id': string;
      'subject_relation'?: string;
      /** An import takes away only what an import brought */
      'origin': 'import' | 'manual';
      'created_at': string;
    };
    'CheckStep': {
      'object': string;
      'permission': string;
      'subject': string;
      'allowed': boolean;
      'steps': components['schemas']['CheckStep'][];
    };
    'GraphObject': {
      'id': string;
      /** Null where no name is known */
      'name': string | null;
    };
    'Role': {
      'role': string;
      /** Of a role of the kind plugin */
      'plugin_id'?: string;
      /** How many users have it */
      'holders': number;
      /** Whether imports of university data give it */
      'imported': boolean;
    };
    'RoleHolder': {
      'user': number;
      'display_name': string;
      'external_id': string | null;
      'role': string;
      /** import: university data gave it, and takes it away */
      'origin': 'import' | 'manual';
      'granted_at': string;
      /** Null for roles of commands */
      'granted_by': string | null;
    };
    'ServiceKey': {
      'id': number;
      'name': string;
      /** The part of the key that is no secret */
      'public': string;
      'scopes': {
        'plugin_id': string;
        'trigger': string;
      }[];
      'created_at': string;
      'rotated_at': string | null;
      /** Until when the secret before the last rotation is valid */
      'old_secret_until': string | null;
      'expires_at': string | null;
      'last_used_at': string | null;
    };
    'TriggerSettings': {
      /** Id of the plugin */
      'plugin_id': string;
      /** Name of the HTTP trigger */
      'trigger': string;
      /** Path in the manifest, below /api/triggers/http/<plugin id> */
      'path': string;
      'methods': ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[];
      'enabled': boolean;
      /** Whether logged-in users may call */
      'allow_user_session': boolean;
      /** Whether service keys may call */
      'allow_service_key': boolean;
      /** Empty for no policy */
      'policy_expression': string;
      /** Null for those of the plugin's own setting */
      'frontend_origins': string[] | null;
      /** Whether executions are recorded, to run them again */
      'record': boolean;
      /** Origins of pages that may call */
      'effective_origins': string[];
      'effective_access': components['schemas']['EffectiveAccess'];
      /** Why the policy denies every caller; empty when it is evaluated */
      'policy_problems': components['schemas']['PolicyProblem'][];
    };
    'ChangedTriggerSettings': {
      /** Id of the plugin */
      'plugin_id': string;
      /** Name of the HTTP trigger */
      'trigger': string;
      /** Path in the manifest, below /api/triggers/http/<plugin id> */
      'path': string;
      'methods': ('GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS')[];
      'enabled': boolean;
      /** Whether logged-in users may call */
      'allow_user_session': boolean;
      /** Whether service keys may call */
      'allow_service_key': boolean;
      /** Empty for no policy */
      'policy_expression': string;
      /** Null for those of the plugin's own setting */
      'frontend_origins': string[] | null;
      /** Whether executions are recorded, to run them again */
      'record': boolean;
      /** Origins of pages that may call */
      'effective_origins': string[];
      'effective_access': components['schemas']['EffectiveAccess'];
      /** Why the policy denies every caller; empty when it is evaluated */
      'policy_problems': components['schemas']['PolicyProblem'][];
      /** Roles that no user has */
      'warnings': components['schemas']['PolicyWarning'][];
    };
    'UninstalledVersion': {
      /** Version as its author calls it */
      'version': string;
      /** Names this version at installing and rolling back */
      'wasm_key': string;
      /** SHA-256 of the file as it was uploaded, in hexadecimal digits */
      'sha256': string;
      /** Bytes of the module as it was uploaded */
      'size': number;
      'uploaded_at': string;
      /** Id of the plugin */
      'id': string;
      'uninstalled_at': string;
      'kept_until': string;
    };
    'BatchResult': {
      'total': number;
      'success': number;
      'errors': components['schemas']['RecordError'][];
      /** How many there are, when some are left out: the log of the import has them */
      'errors_total'?: number;
    };
    'RecordError': {
      /** Place in the list, from 0 */
      'index': number;
      'external_id': string | null;
      /** Path of the field in the record; null for the record as a whole */
      'field': string | null;
      'code': 'not_an_object' | 'missing' | 'invalid' | 'unknown_reference' | 'duplicate' | 'conflict';
      'message': string;
    };
    'ImportRun': {
      'id': number;
      'kind': 'batch' | 'pull';
      'state': 'running' | 'succeeded' | 'partial' | 'failed' | 'interrupted';
      'started_by': string;
      /** Who or what started it */
      'starter': {
        'kind': 'administrator' | 'admin_key' | 'import_key' | 'setup' | 'schedule';
        /** An email, or the name of a key */
        'name': string | null;
      };
      'started_at': string;
      'finished_at': string | null;
      'problem': string | null;
      'types': ({
        'type': 'person' | 'course' | 'semester' | 'faculty' | 'department' | 'program' | 'stream' | 'group' | 'subgroup' | 'teacher_position' | 'student_position' | 'student_subgroup' | 'teaching_assignment' | 'admin_appointment';
        'state': 'waiting' | 'fetching' | 'running' | 'succeeded' | 'partial' | 'failed' | 'unchanged' | 'not_offered' | 'stopped';
        'total': number;
        'success': number;
        'created': number;
        'updated': number;
        'deactivated': number;
        'failed': number;
        /** How many of the active records the list would make inactive that the brake has stopped */
        'brake': {
          'ending': number;
          'active': number;
        } | null;
        'problem': string | null;
        'started_at': string | null;
        'finished_at': string | null;
      })[];
    };
    'EndingRecord': {
      'external_id': string;
      /** Its name, or that of the person it is of; null when it has none */
      'name': string | null;
    };
    'UniversityType': {
      'type': 'person' | 'course' | 'semester' | 'faculty' | 'department' | 'program' | 'stream' | 'group' | 'subgroup' | 'teacher_position' | 'student_position' | 'student_subgroup' | 'teaching_assignment' | 'admin_appointment';
      /** Last segment of the path of its batch import */
      'path': string;
      /** Types of a phase refer to those of the phases before */
      'phase': number;
      'fields': ({
        'name': string;
        'kind': 'text' | 'whole_number' | 'number' | 'boolean' | 'date' | 'time' | 'object' | 'list';
        'required': boolean;
        /** The only values it takes; null where it takes others */
        'values': string[] | null;
        /** It names a record of this type by its external_id */
        'references': 'person' | 'course' | 'semester' | 'faculty' | 'department' | 'program' | 'stream' | 'group' | 'subgroup' | 'teacher_position' | 'student_position' | 'student_subgroup' | 'teaching_assignment' | 'admin_appointment' | null;
      })[];
      /** Columns of files that have other names than the fields: the field of each; null where it is left out */
      'columns': Record<string, string | null>;
      'records': number;
      'active': number;
      /** The last import of the type that is in the log */
      'last': {
        'import': number;
        'kind': 'batch' | 'pull';
        'state': 'waiting' | 'fetching' | 'running' | 'succeeded' | 'partial' | 'failed' | 'unchanged' | 'not_offered' | 'stopped';
        'total': number;
        'success': number;
        'failed': number;
        'problem': string | null;
        'at': string;
      } | null;
    };
    'UniversitySource': {
      /** Null when there is no source: university_sync.base_url */
      'base_url': string | null;
      /** Whether it is pulled in the background: university_sync.enabled */
      'enabled': boolean;
      'interval_seconds': number;
      'brake_percent': number;
      /** About when the next pull begins; null when none is to come */
      'next_pull_at': string | null;
      'last_pull': components['schemas']['ImportRun'] | null;
    };
    'AnnouncedFile': {
      'file_id': string;
      /** Where the bytes go, here or in the S3 store */
      'upload_url': string;
      'upload_method': string;
      /** Headers to send as they are */
      'upload_headers': Record<string, string>;
      'expires_at': string;
    };
    'FileRef': {
      'id': string;
      'name': string;
      'mime_type': string;
      /** Bytes */
      'size': number;
      'file_type': 'photo' | 'document' | 'audio' | 'video' | 'voice' | 'sticker';
    };
    'UserRole': {
      /** What policies ask for with has_role */
      'kind': 'database';
      'role': string;
      /** import: university data gave it, and takes it away */
      'origin': 'import' | 'manual';
      'granted_at': string;
      'granted_by': string;
    } | {
      /** What commands ask for */
      'kind': 'system' | 'global';
      'role': string;
      /** import: university data gave it, and takes it away */
      'origin': 'import' | 'manual';
      'granted_at': string;
    } | {
      'kind': 'plugin';
      'plugin_id': string;
      'role': string;
      /** import: university data gave it, and takes it away */
      'origin': 'import' | 'manual';
      'granted_at': string;
    };
    'UserRoleChange': {
      'user': number;
      'kind': 'database' | 'system' | 'global' | 'plugin';
      /** Of a role of the kind plugin */
      'plugin_id'?: string;
      'role': string;
      /** Whether the user has it now */
      'granted': boolean;
      /** Whether this request changed anything */
      'changed': boolean;
      /** Whether the graph store has the change already */
      'delivered': boolean;
      'warnings': components['schemas']['Warning'][];
    };
    'User': {
      'id': number;
      'external_id': string | null;
      'idp_accounts_id': string | null;
      'display_name': string;
      'primary_channel': 'TELEGRAM' | 'VK' | null;
      'locale': 'ru' | 'en';
      'nationality_type': 'domestic' | 'foreign' | null;
      'funding_type': 'budget' | 'contract' | null;
      'education_form': 'full_time' | 'part_time' | 'remote' | null;
      'created_at': string;
      'updated_at': string;
    };
    'UserPosition': {
      'kind': 'student' | 'subgroup' | 'teacher' | 'teaching' | 'appointment';
      /** Id of the record in the university’s systems */
      'external_id': string;
      /** Type in the graph of where it is */
      'object_type': string;
      'object_id': string;
      'object_name': string | null;
      /** Status of a student, title, course or office */
      'title': string | null;
      'start_date': string | null;
      'end_date': string | null;
      /** Whether it counts today */
      'holds': boolean;
    };
  };
}
