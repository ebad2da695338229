import type { RedisCommandOptions, RedisWords } from './redis-server.ts';

/** The way to one server or to a cluster. */
export interface RedisLink {
  /** False while it is known that nothing gets through: then nobody has to wait for an answer. */
  readonly usable: boolean;
  /** Connections made so far, the first one included. */
  readonly connects: number;
  /**
   * Sends one command, in one pipeline with all others of the same turn. Rejects with what the server or the connection says.
   *
   * @param key that the command is about; in a cluster it decides who gets it
   */
  send(key: string, words: RedisWords, options: RedisCommandOptions): Promise<unknown>;
  /** An answer came that makes sense. */
  healthy(): void;
  /** The connection broke, is silent, or has lost its place in the stream: it is not to be used on. */
  broken(): void;
  close(): Promise<void>;
}
