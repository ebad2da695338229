/** A pipe between two workers that keeps bytes in order: a socket, a message port. */
export interface Wire {
  /** Names the other end, for messages. */
  readonly peer: string;
  /** Bytes that were written and have not left this process. */
  readonly queuedBytes: number;
  /** Who is told what comes. Set once, before anything comes. */
  listener: WireListener;
  /** Hands bytes on; they belong to the wire from then on. Nothing happens once the wire has ended. */
  write(bytes: Uint8Array): void;
  /** Ends this side. Settles when what was written has left, or never will. */
  end(): Promise<void>;
  /** Ends both sides at once; what is on its way is lost. */
  destroy(): void;
}

export interface WireListener {
  /** Bytes came. They belong to the listener. */
  bytes(chunk: Uint8Array): void;
  /** Nothing more will come. Told once. */
  ended(): void;
}

/** What hears a wire before anybody wants it. */
export const deaf: WireListener = { bytes() {}, ended() {} };
