import type { ArrivedRequest } from '@bufferwise/adapter-disaggregation';
import type { GeneratedToken, GenerationReport, GenerationRequest, HybridEngine } from '@bufferwise/hybrid-engine';
import type { AnswerEngine } from '../answer/answer-prompt.ts';
import type { PromptToRead } from './prompt-body.ts';

type Answer = AsyncGenerator<GeneratedToken, GenerationReport, void>;

export interface ElsewhereReadOptions {
  readonly engine: Pick<HybridEngine, 'generateSeveral' | 'continueSeveral' | 'manager'>;
  /** Tokens beyond the cache from which on a prompt is read elsewhere. */
  readonly prefillFrom: number;
  /** Has a prompt read elsewhere. Null: it is to be read here. */
  move(prompt: PromptToRead, signal: AbortSignal | undefined): Promise<ArrivedRequest | null>;
}

/** Answers prompts, the long ones of which another worker has read. Whoever asks sees the same tokens either way. */
export class AnswersElsewhereRead implements AnswerEngine {
  readonly #options: ElsewhereReadOptions;

  constructor(options: ElsewhereReadOptions) {
    this.#options = options;
  }

  /** As that of an engine, and throws as it does. A prompt is given away when the first of its answers is asked for a token. */
  generateSeveral(request: GenerationRequest, numAnswers: number): Answer[] {
    const { engine, prefillFrom } = this.#options;
    // Refuses at once what can never be answered; unread, it holds nothing.
    const here = engine.generateSeveral(request, numAnswers);
    if (request.prompt.length - 1 < prefillFrom) return here;
    let begun: Promise<Answer[]> | undefined;
    const answers = () => {
      begun ??= this.#begin(request, here);
      return begun;
    };
    return here.map((_, i) => readLater(answers, i));
  }

  /** Where the prompt is read is settled, and it has been where that is elsewhere. */
  async #begin(request: GenerationRequest, here: Answer[]): Promise<Answer[]> {
    const { engine, prefillFrom, move } = this.#options;
    const { turnBorders, publish, scope, priority, signal } = request;
    const prompt = Uint32Array.from(request.prompt);
    const known = engine.manager.probeReuse(prompt.subarray(0, -1), scope);
    if (prompt.length - 1 - known < prefillFrom) return here;
    const arrived = await move({ prompt, turnBorders, publish, scope, priority }, signal);
    if (arrived === null) return here;
    try {
      return engine.continueSeveral(arrived, request, here.length);
    } catch (error) {
      arrived.cache.close();
      throw error;
    }
  }
}

async function* readLater(answers: () => Promise<Answer[]>, i: number): Answer {
  return yield* (await answers())[i];
}
