import type { HybridEngine, HybridModel } from '@bufferwise/hybrid-engine';
import type { EngineSettings } from '../protocol/about.ts';
import type { ComparisonUpdate, Order, TurnUpdate } from '../protocol/messages.ts';
import { COMPARED_TEXTS } from '../story/passages.ts';
import { runUnder } from './compare.ts';
import { concatTokens } from './concat-tokens.ts';
import { Conversation } from './conversation.ts';
import { describeGroups, describeLayers, leastDeviceBytes } from './describe-engine.ts';
import { EventJournal } from './event-journal.ts';
import { Gate } from './gate.ts';
import { type KeptPrefixes, openKeptPrefixes } from './kept-prefixes.ts';
import { loadModel } from './load-model.ts';
import { makeEngine } from './make-engine.ts';
import { openDevice } from './open-device.ts';
import { type Post, Watcher } from './watcher.ts';

/** Everything that stays while engines come and go. */
interface Ground {
  readonly model: HybridModel;
  readonly device: GPUDevice;
  readonly deviceName: string;
  readonly kept: KeptPrefixes | string;
}

type Ask = Extract<Order, { type: 'ask' }>;
type Compare = Extract<Order, { type: 'compare' }>;

/** One visit: the model, the engine as it is set now, and the conversations that it answers. */
export class Visit {
  readonly #post: Post;
  readonly #gate = new Gate();
  readonly #journal = new EventJournal(() => performance.now());
  readonly #watcher: Watcher;
  readonly #conversations = new Map<number, Conversation>();
  /** Answers under way, each until it has ended. */
  readonly #answers = new Set<Promise<void>>();
  #ground: Ground | null = null;
  #engine: HybridEngine | null = null;
  #settings: EngineSettings | null = null;

  constructor(post: Post) {
    this.#post = post;
    this.#watcher = new Watcher(post, this.#journal);
  }

  /**
   * Loads the model and makes the first engine.
   *
   * @param base address of the page
   * @throws {NoDeviceError} without WebGPU, and whatever the model's files and the device say
   */
  async open(base: string, settings: EngineSettings): Promise<void> {
    const progress = (what: string, share: number) => this.#post({ type: 'progress', what, share });
    progress('Looking for a graphics device', 0);
    const { device, name } = await openDevice();
    progress('Loading the model', 0.1);
    const model = await loadModel(base, (share) => progress('Loading the model', 0.1 + 0.5 * share));
    progress('Looking for what earlier visits left', 0.65);
    this.#ground = { model, device, deviceName: name, kept: await openKeptPrefixes(model) };
    void device.lost.then(({ message }) =>
      this.#post({ type: 'failed', message: `The browser took the graphics device away. ${message} Reload the page to go on.` }),
    );
    progress('Compiling the kernels', 0.7);
    await this.#start(settings);
  }

  /** Makes another engine. What conversations have said stays. */
  async reopen(settings: EngineSettings): Promise<void> {
    for (const conversation of this.#conversations.values()) conversation.stop();
    await Promise.all(this.#answers);
    const engine = this.#requireEngine();
    const before = this.#settings;
    await engine.saved();
    this.#watcher.watch(null);
    this.#engine = null;
    await engine.close();
    try {
      await this.#start(settings);
    } catch (error) {
      if (before === null) throw error;
      this.#post({ type: 'notice', message: `The engine cannot be so: ${messageOf(error)}` });
      await this.#start(before);
    }
  }

  ask(order: Ask): void {
    const conversation = this.#conversation(order.conversation);
    if (conversation.isRunning) return;
    const answer = this.#answer(conversation, order).finally(() => this.#answers.delete(answer));
    this.#answers.add(answer);
  }

  branch(from: number, to: number): void {
    this.#conversations.set(to, new Conversation(to, this.#conversation(from).tokens));
  }

  stop(id: number): void {
    this.#conversation(id).stop();
  }

  discard(id: number): void {
    this.#conversations.get(id)?.stop();
    this.#conversations.delete(id);
  }

  setPace(stepping: boolean): void {
    this.#gate.setStepping(stepping);
  }

  step(): void {
    this.#gate.step();
  }

  /** Gives the device another quota; what does not fit any more is evicted. */
  async resize(deviceBytes: number): Promise<void> {
    const engine = this.#requireEngine();
    const done = await this.#gate.alone(async () => {
      await engine.saved();
      return engine.manager.resizeTier(0, deviceBytes);
    });
    if (done && this.#settings !== null) this.#settings = { ...this.#settings, deviceBytes };
    this.#journal.note({ kind: 'resized', deviceBytes, done });
    this.#postAbout();
    this.#watcher.poke();
  }

  async forget(): Promise<void> {
    const engine = this.#requireEngine();
    if (this.#answers.size > 0) {
      this.#post({ type: 'notice', message: 'Memory can be cleared when no answer is under way: stop them first.' });
      return;
    }
    await this.#gate.alone(async () => {
      await engine.saved();
      engine.manager.clearReusableBlocks();
    });
    this.#journal.note({ kind: 'cleared' });
    this.#watcher.poke();
  }

  async forgetKept(): Promise<void> {
    const { kept } = this.#requireGround();
    if (typeof kept === 'string') return;
    await this.#requireEngine().saved();
    await kept.forget();
    this.#post({ type: 'notice', message: 'What was kept beyond a reload is forgotten.' });
  }

  /** Runs the same two requests under two settings. */
  async compare({ subject, before, after }: Compare): Promise<void> {
    const { model, device } = this.#requireGround();
    const { beginning, endings } = COMPARED_TEXTS[subject];
    const encode = (text: string) => model.tokenizer.encode(text);
    const prompts = { beginning: encode(beginning), endings: [encode(endings[0]), encode(endings[1])] as const };
    const update = (how: ComparisonUpdate) => this.#post({ type: 'comparison', subject, ...how });
    try {
      update({ state: 'running', share: 0.05 });
      const one = await runUnder(before, { model, device, prompts });
      update({ state: 'running', share: 0.5 });
      const other = await runUnder(after, { model, device, prompts });
      const sameText = one.tokens.every((token, i) => token === other.tokens[i]);
      update({ state: 'done', before: one, after: other, sameText });
    } catch (error) {
      update({ state: 'failed', message: messageOf(error) });
    }
  }

  async #start(settings: EngineSettings): Promise<void> {
    const { model, device, kept } = this.#requireGround();
    const outside = typeof kept === 'string' ? undefined : kept;
    const engine = await makeEngine(settings, { model, device, outside, events: this.#journal });
    this.#engine = engine;
    this.#settings = settings;
    this.#postAbout();
    this.#watcher.watch(engine);
    this.#journal.note({ kind: 'opened', numGroups: engine.manager.lifecycles.size });
  }

  async #answer(conversation: Conversation, order: Ask): Promise<void> {
    const { id } = conversation;
    const update = (turn: Omit<TurnUpdate, 'conversation'>) => this.#post({ type: 'turn', conversation: id, ...turn });
    const signal = conversation.begin();
    try {
      const { model } = this.#requireGround();
      const pieces = order.pieces.map((piece) => model.tokenizer.encode(piece));
      const borders = bordersOf(conversation.tokens.length, pieces);
      conversation.say(concatTokens(...pieces));
      const prompt = conversation.tokens;
      update({ state: 'waiting', promptTokens: prompt.length });
      await this.#read(conversation, { order, prompt, borders, signal, update });
    } catch (error) {
      if (signal.aborted) {
        this.#journal.note({ kind: 'stopped', conversation: id });
        update({ state: 'stopped' });
      } else {
        this.#journal.note({ kind: 'failed', conversation: id, message: messageOf(error) });
        update({ state: 'failed', message: messageOf(error) });
      }
    } finally {
      conversation.end();
      this.#watcher.poke();
      // What is kept for the next visit is read off the device behind the answer, and lets go of its pages then.
      void this.#engine?.saved().then(() => this.#watcher.poke());
    }
  }

  async #read(
    conversation: Conversation,
    given: {
      order: Ask;
      prompt: Uint32Array;
      borders: number[];
      signal: AbortSignal;
      update: (turn: Omit<TurnUpdate, 'conversation'>) => void;
    },
  ): Promise<void> {
    const { order, prompt, borders, signal, update } = given;
    const { id } = conversation;
    const { tokenizer } = this.#requireGround().model;
    const end = tokenizer.idOf('<|end|>');
    const decoder = tokenizer.streamDecoder();
    const tokens = this.#requireEngine().generate({
      prompt,
      turnBorders: borders,
      maxNewTokens: order.maxNewTokens,
      sampling: { temperature: order.temperature, topP: 0.95, seed: id * 1000 + prompt.length },
      stopTokens: end === undefined ? [] : [end],
      id,
      signal,
      onBegin: ({ reusedTokens, groups }) => {
        this.#journal.note({ kind: 'began', conversation: id, promptTokens: prompt.length, reusedTokens, groups });
        const reusedChars = tokenizer.decode(prompt.subarray(0, reusedTokens)).length;
        update({ state: 'reading', promptTokens: prompt.length, reusedTokens, reusedChars });
        this.#watcher.poke();
      },
    });
    for (;;) {
      const next = await this.#gate.through(() => tokens.next(), signal);
      this.#watcher.poke();
      if (next.done) {
        const rest = decoder.end();
        if (rest !== '') this.#post({ type: 'said', conversation: id, text: rest, numTokens: 0 });
        this.#journal.note({ kind: 'answered', conversation: id, report: next.value });
        update({ state: 'done', report: next.value });
        return;
      }
      conversation.say(Uint32Array.of(next.value.token));
      this.#post({ type: 'said', conversation: id, text: decoder.push(next.value.token), numTokens: 1 });
    }
  }

  #postAbout(): void {
    const { model, deviceName, kept } = this.#requireGround();
    const { manager } = this.#requireEngine();
    if (this.#settings === null) return;
    this.#post({
      type: 'ready',
      about: {
        model: model.config.name,
        device: deviceName,
        numParameters: [...model.tensors.values()].reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0),
        tokensPerBlock: manager.layout.tokensPerBlock,
        settings: this.#settings,
        leastDeviceBytes: leastDeviceBytes(manager),
        layers: describeLayers(model, manager),
        groups: describeGroups(manager),
        keeps: typeof kept === 'string' ? { kept: false, why: kept } : { kept: true },
      },
    });
  }

  #conversation(id: number): Conversation {
    let conversation = this.#conversations.get(id);
    if (conversation === undefined) {
      conversation = new Conversation(id);
      this.#conversations.set(id, conversation);
    }
    return conversation;
  }

  #requireEngine(): HybridEngine {
    if (this.#engine === null) throw new Error('There is no engine yet.');
    return this.#engine;
  }

  #requireGround(): Ground {
    if (this.#ground === null) throw new Error('The model is not there yet.');
    return this.#ground;
  }
}

/** Token counts at which what was said before ends, and each piece but the last. */
function bordersOf(start: number, pieces: readonly Uint32Array[]): number[] {
  const borders = new Set<number>();
  let at = start;
  for (const piece of pieces) {
    if (at > 0 && piece.length > 0) borders.add(at);
    at += piece.length;
  }
  return [...borders];
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
