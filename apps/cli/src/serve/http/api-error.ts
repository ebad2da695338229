/** The kinds of mistakes that clients of OpenAI's interface tell apart. */
export type ApiErrorType = 'invalid_request_error' | 'authentication_error' | 'rate_limit_error' | 'server_error';

export interface ApiErrorOptions {
  /** HTTP status, 400 to 599. */
  readonly status: number;
  readonly type?: ApiErrorType;
  /** Stable word for programs. */
  readonly code?: string | null;
  /** The field of the request at fault, as a path (`messages[0].role`). */
  readonly param?: string | null;
  /** Seconds after which it is worth while to try again. */
  readonly retryAfter?: number;
  readonly cause?: unknown;
}

/** What OpenAI's interface says of a mistake. */
export interface ApiErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: ApiErrorType;
    readonly param: string | null;
    readonly code: string | null;
  };
}

/** An answer that is an error: what a client is told, and how. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly type: ApiErrorType;
  readonly code: string | null;
  readonly param: string | null;
  readonly retryAfter: number | undefined;

  constructor(message: string, { status, type, code = null, param = null, retryAfter, cause }: ApiErrorOptions) {
    super(message, { cause });
    this.status = status;
    this.type = type ?? (status < 500 ? 'invalid_request_error' : 'server_error');
    this.code = code;
    this.param = param;
    this.retryAfter = retryAfter;
  }

  get body(): ApiErrorBody {
    const { message, type, param, code } = this;
    return { error: { message, type, param, code } };
  }
}

/** A field that holds what it must not. */
export function badField(param: string, message: string, code: string | null = null): ApiError {
  return new ApiError(`${param} ${message}`, { status: 400, param, code });
}
