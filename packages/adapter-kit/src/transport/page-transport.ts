import type { CallOptions, Plugin } from '../plugin.ts';

/** What of the optional parts a transport does. */
export interface PageTransportSupports {
  /** `sendPages` waits while the other side has not taken what is on its way: no more than `windowBytes` is. */
  readonly flowControl: boolean;
  /** Pages that were damaged on the way come as `damaged`; elsewhere the connection is lost with them. */
  readonly damageReports: boolean;
}

/** What a transport takes at a time, in bytes. Stays the same for its life. */
export interface PageTransportLimits {
  readonly maxMessageBytes: number;
  /** Bytes of the pages of one `sendPages`. */
  readonly maxPagesBytes: number;
  /** Bytes of pages that may be on their way in one direction of a connection; at least `maxPagesBytes`. */
  readonly windowBytes: number;
}

/** What messages and pages belong to. */
export interface StreamId {
  /** Name of the request: up to 255 bytes of UTF-8. */
  readonly request: string;
  /** Which try of the request: 0, 1, 2, … below 2^32. What belongs to an earlier one is of no use to anybody. */
  readonly generation: number;
  /** Buffer group that it is about; 0 for what is about all of them. Below 2^32. */
  readonly group: number;
}

export interface TransferMessage {
  readonly stream: StreamId;
  /** Of no meaning to the transport. Belongs to the call until it settles. */
  readonly body: Uint8Array;
}

export interface TransferPages {
  readonly stream: StreamId;
  /** Which page of the transfer the bytes begin with, below 2^32. */
  readonly firstPage: number;
  /** One page or several, one behind the other. Belongs to the call until it settles. */
  readonly bytes: Uint8Array;
}

/** What came from the other side, in the order of its calls. Bytes belong to whoever received them. */
export type Received =
  | ({ readonly kind: 'message' } & TransferMessage)
  | ({ readonly kind: 'pages' } & TransferPages)
  /** The other side gave up a request, up to this generation. */
  | { readonly kind: 'aborted'; readonly request: string; readonly generation: number; readonly reason: string }
  /** Pages came that are not what was sent; of which stream cannot be told for certain. */
  | { readonly kind: 'damaged' };

/**
 * A connection between two workers. What one sends the other receives: whole, once, in order, or not at all.
 *
 * Calls reject with `plugin-closed` after the own `close`, with `peer-lost` when the other side is gone (also by its `close`, once all
 * that came before has been received), and with the signal's reason.
 */
export interface PageConnection {
  /** Sends a message. Settles when it is on its way, in order with `sendPages`. Throws {AdapterError} `message-too-large`, `invalid-stream`. */
  send(message: TransferMessage, options?: CallOptions): Promise<void>;
  /** Sends pages. Settles when they are on their way; with `flowControl` it waits until the window has room. Errors as `send`. */
  sendPages(pages: TransferPages, options?: CallOptions): Promise<void>;
  /** The next that came. One call at a time. */
  receive(options?: CallOptions): Promise<Received>;
  /**
   * Gives up a request up to a generation: what was not sent is not sent, what comes of it is dropped, and the other side is told, which
   * drops what it has not received yet. Later generations are not concerned.
   */
  abort(request: string, generation: number, reason: string): Promise<void>;
  /** The same on this side only: what comes of the request up to the generation is dropped unseen. */
  retire(request: string, generation: number): void;
  /** Bytes of pages that are on their way to the other side and that it has not received. */
  readonly bytesInFlight: number;
  /** Ends the connection. What was sent before arrives. */
  close(): Promise<void>;
}

/** Where connections come in. */
export interface PageListener {
  /** What others connect to. */
  readonly address: string;
  /** The next connection. */
  accept(options?: CallOptions): Promise<PageConnection>;
  /** Takes no further connections; those that were accepted stay. */
  close(): Promise<void>;
}

/**
 * Moves messages and pages between workers. It knows nothing of what is in them; it keeps them whole and in order, or says that the
 * other side is lost. Closing it closes all of its listeners and connections.
 */
export interface PageTransport extends Plugin<PageTransportSupports> {
  readonly limits: PageTransportLimits;
  /** @param address where, in the transport's own form. Left out: anywhere */
  listen(address?: string, options?: CallOptions): Promise<PageListener>;
  /** @throws {AdapterError} `unknown-address` where nobody listens */
  connect(address: string, options?: CallOptions): Promise<PageConnection>;
  close(): Promise<void>;
}
