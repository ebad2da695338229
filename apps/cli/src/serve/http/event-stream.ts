import type { ServerResponse } from 'node:http';
import { StalledReaderError } from '../admission/endings.ts';

/** One server-sent event. */
export function eventFrame(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** What OpenAI's streams end with. */
export const DONE_FRAME = 'data: [DONE]\n\n';

/**
 * Server-sent events on one response. At most what the socket buffers and one event is kept: whoever sends waits for the reader, and a
 * reader who takes nothing for `stallMs` is cut off.
 */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #stallMs: number;
  #drained: Promise<void> | null = null;

  constructor(response: ServerResponse, stallMs: number) {
    this.#response = response;
    this.#stallMs = stallMs;
  }

  /** Sends the head of the response. */
  open(headers: Readonly<Record<string, string>> = {}): void {
    this.#response.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      // Proxies that gather responses would make a stream one piece.
      'x-accel-buffering': 'no',
    });
    this.#response.flushHeaders();
  }

  /** Settles when there is room for more. Throws {StalledReaderError} when there is none for too long. */
  async send(data: unknown): Promise<void> {
    await this.#write(eventFrame(data));
  }

  /** Ends it, and settles when the reader has it all or is gone. */
  async end(lastFrame = ''): Promise<void> {
    await endWithin(this.#response, lastFrame, this.#stallMs);
  }

  async #write(frame: string): Promise<void> {
    const response = this.#response;
    // Several answers share the stream: who comes while it is full waits with the others.
    if (this.#drained !== null) await this.#drained;
    if (response.destroyed || response.write(frame)) return;
    this.#drained ??= this.#drain().finally(() => {
      this.#drained = null;
    });
    await this.#drained;
  }

  async #drain(): Promise<void> {
    const outcome = await settled(this.#response, 'drain', this.#stallMs);
    if (outcome === 'late') cutOff(this.#response, this.#stallMs);
  }
}

/** Ends a response, and cuts a reader off who does not take what is left of it. Settles when either is done. */
async function endWithin(response: ServerResponse, lastFrame: string, stallMs: number): Promise<void> {
  if (response.destroyed) return;
  response.end(lastFrame);
  if ((await settled(response, 'finish', stallMs)) === 'late') response.destroy();
}

function cutOff(response: ServerResponse, stallMs: number): never {
  const error = new StalledReaderError(stallMs);
  response.destroy(error);
  throw error;
}

/** Waits for an event, for the end of the connection, or for the time to be over. */
function settled(response: ServerResponse, event: 'drain' | 'finish', ms: number): Promise<'done' | 'late'> {
  return new Promise((resolve) => {
    const end = (outcome: 'done' | 'late') => {
      clearTimeout(timer);
      response.off(event, onDone);
      response.off('close', onDone);
      resolve(outcome);
    };
    const onDone = () => end('done');
    const timer = setTimeout(() => end('late'), ms);
    response.on(event, onDone);
    response.on('close', onDone);
  });
}

/** Cuts a reader off who has not taken a whole reply `stallMs` after it was given to the socket. */
export function cutOffStalled(response: ServerResponse, stallMs: number): void {
  const timer = setTimeout(() => response.destroy(), stallMs);
  timer.unref();
  response.once('close', () => clearTimeout(timer));
}
