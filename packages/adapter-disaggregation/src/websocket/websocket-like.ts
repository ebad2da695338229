/** What the sockets of browsers, of Node and of `ws` have in common. */
export interface WebSocketLike {
  readonly readyState: number;
  /** Bytes that were sent and have not left this process. */
  readonly bufferedAmount: number;
  binaryType: string;
  send(bytes: Uint8Array): void;
  close(code?: number): void;
  /** Ends it without a word; only `ws` can. */
  terminate?(): void;
  addEventListener(type: 'open' | 'message' | 'close' | 'error', listener: (event: WebSocketEvent) => void): void;
}

/** What is read of the events of all of them. */
export interface WebSocketEvent {
  /** Of a message. */
  readonly data?: unknown;
  /** Of an error, where the platform says why. */
  readonly error?: unknown;
}

/** `readyState` of a socket that takes bytes. */
export const OPEN = 1;
