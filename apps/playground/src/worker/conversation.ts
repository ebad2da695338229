import { concatTokens } from './concat-tokens.ts';

/** What has been said in one conversation, as tokens, and whether it is being answered now. */
export class Conversation {
  readonly id: number;
  #tokens: Uint32Array;
  #running: AbortController | null = null;

  constructor(id: number, tokens: Uint32Array = new Uint32Array(0)) {
    this.id = id;
    this.#tokens = tokens;
  }

  /** All of it. Never written again. */
  get tokens(): Uint32Array {
    return this.#tokens;
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  say(tokens: Uint32Array): void {
    this.#tokens = concatTokens(this.#tokens, tokens);
  }

  begin(): AbortSignal {
    this.#running = new AbortController();
    return this.#running.signal;
  }

  end(): void {
    this.#running = null;
  }

  stop(): void {
    this.#running?.abort();
  }
}
