import type { GenerationReport, HybridEngine, TextTokenizer } from '@bufferwise/hybrid-engine';

/** One request of the demo, and what it left behind. */
export interface DemoResult {
  name: string;
  tokens: number[];
  report: GenerationReport;
  /** Pages in the pools, at most while the request ran: its own, and what earlier ones published. */
  pages: number;
  /** Bytes of these pages. */
  bytes: number;
}

/** Told as a request goes on, for people to watch. */
export interface DemoObserver {
  begins(name: string, ending: string): void;
  says(text: string): void;
  ends(): void;
}

interface DemoPrompt {
  name: string;
  /** What the request adds to what came before, for people. */
  ending: string;
  ids: Uint32Array;
  turnBorders: number[];
}

export interface DemoTexts {
  shared: string;
  endingA: string;
  endingB: string;
  secondTurn: string;
}

export interface DemoOptions {
  reuse: boolean;
  maxNewTokens: number;
  observer: DemoObserver;
  /** Ends the run between two tokens. */
  signal: AbortSignal;
}

/** Token ids of the first request. */
export function firstPrompt(tokenizer: TextTokenizer, { shared, endingA }: DemoTexts): Uint32Array {
  return concat(tokenizer.encode(shared), tokenizer.encode(endingA));
}

/** Three requests one after the other: A, B on the same beginning, and a second turn of A. */
export async function runRequests(engine: HybridEngine, texts: DemoTexts, options: DemoOptions): Promise<DemoResult[]> {
  const { tokenizer } = engine.model;
  const shared = tokenizer.encode(texts.shared);
  const ask = (prompt: DemoPrompt) => answer(engine, prompt, options);
  const onShared = (name: string, ending: string): DemoPrompt => ({
    name,
    ending,
    ids: concat(shared, tokenizer.encode(ending)),
    turnBorders: [shared.length],
  });

  const promptA = onShared('A', texts.endingA);
  const a = await ask(promptA);
  const b = await ask(onShared('B', texts.endingB));
  const conversation = concat(promptA.ids, Uint32Array.from(a.tokens));
  const secondTurn = concat(conversation, tokenizer.encode(texts.secondTurn));
  const a2 = await ask({ name: 'A, turn 2', ending: texts.secondTurn, ids: secondTurn, turnBorders: [conversation.length] });
  return [a, b, a2];
}

async function answer(
  engine: HybridEngine,
  prompt: DemoPrompt,
  { reuse, maxNewTokens, observer, signal }: DemoOptions,
): Promise<DemoResult> {
  const { name, ending, ids, turnBorders } = prompt;
  observer.begins(name, ending);
  const decoder = engine.model.tokenizer.streamDecoder();
  const tokens: number[] = [];
  const steps = engine.generate({ prompt: ids, turnBorders, maxNewTokens, lookup: reuse, publish: reuse, signal });
  let memory = memoryInUse(engine);
  for (;;) {
    const next = await steps.next();
    if (next.done) {
      observer.says(decoder.end());
      observer.ends();
      return { name, tokens, report: next.value, ...memory };
    }
    // With its last token a request has let go of what nobody else may use.
    const now = memoryInUse(engine);
    if (now.bytes > memory.bytes) memory = now;
    tokens.push(next.value.token);
    observer.says(decoder.push(next.value.token));
  }
}

function memoryInUse(engine: HybridEngine): { pages: number; bytes: number } {
  let pages = 0;
  let bytes = 0;
  for (const { total, free, slotBytes } of engine.storage()) {
    pages += total - free;
    bytes += (total - free) * slotBytes;
  }
  return { pages, bytes };
}

function concat(...parts: readonly Uint32Array[]): Uint32Array {
  const joined = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
