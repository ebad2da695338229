import { EngineError } from '../engine/engine-error.ts';
import type { SequenceChunk } from '../engine/gpu-model.ts';
import { nextTask } from '../engine/next-task.ts';
import { chooseVictim } from './choose-victim.ts';
import { shareTokens } from './share-tokens.ts';
import { byRank, type Task } from './task.ts';

/** Runs one step and returns the logits that each chunk asked for; everything is submitted before it returns. */
export type RunStep = (chunks: readonly SequenceChunk[]) => Promise<readonly (readonly Float32Array[])[]>;

export interface SchedulerOptions {
  run: RunStep;
  /** Tokens of a step, of all tasks together. */
  maxStepTokens: number;
  /** Tasks on the device at the same time. */
  maxActive: number;
  /** Whether pages of a suspended task can leave the device. Without, a task that gives way is computed anew. */
  hasColderTier: boolean;
}

/** What the scheduler has done, counted. */
export interface SchedulerCounts {
  /** Times that a task gave its place on the device up and kept its pages. */
  numSuspensions: number;
  /** Times that a task gave its pages up. */
  numReleases: number;
}

/** Tasks that have not ended. */
export interface SchedulerLoad {
  /** Those whose pages are on the device. */
  readonly active: number;
  /** Those that wait for a place there, the ones that made way included. */
  readonly waiting: number;
}

/**
 * Continuous batching: in every step all tasks that somebody waits for take part as far as the step has room, new ones as soon as
 * there are pages for them. When pages run out, the last in rank gives way.
 *
 * Nobody starves: the first in rank may take the pages of all others, and it fits alone, or it had been refused.
 * Tasks are driven by demand: one that nobody waits for is in no step, so a slow reader costs others nothing but the pages he holds,
 * and he loses those first.
 */
export class Scheduler {
  readonly counts: SchedulerCounts = { numSuspensions: 0, numReleases: 0 };
  readonly #options: SchedulerOptions;
  readonly #tasks = new Set<Task>();
  /** Those besides tasks that hold pages: each settles when it has let go. */
  readonly #others = new Set<Promise<void>>();
  #running = false;
  /** Ends a wait for others: somebody has asked for something, or let something go. */
  #wake = () => {};
  /** After somebody had to give way nobody new comes in until something has ended: he would be the next to go. */
  #crowded = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  get load(): SchedulerLoad {
    const active = this.#ranked((task) => task.active).length;
    return { active, waiting: this.#ranked((task) => !task.active).length };
  }

  /** The task has ended: it is not asked any more. */
  remove(task: Task): void {
    if (!this.#tasks.delete(task)) return;
    this.#crowded = false;
    this.#wake();
  }

  /** Ends all of them with an error. */
  failAll(error: unknown): void {
    for (const task of [...this.#tasks]) task.fail(error);
  }

  /** Somebody waits for a task. It takes part until it is removed. */
  ask(task: Task): void {
    this.#tasks.add(task);
    this.#wake();
    if (!this.#running) void this.#drive();
  }

  /** Others than tasks hold pages until a promise settles: whoever finds no room waits instead of failing. */
  waitFor(others: Promise<unknown>): void {
    const letGo: Promise<void> = others.then(
      () => void this.#others.delete(letGo),
      () => void this.#others.delete(letGo),
    );
    this.#others.add(letGo);
  }

  async #drive(): Promise<void> {
    this.#running = true;
    for (;;) {
      // Everybody who got something from the last step comes back with the next wish first.
      await nextTask();
      if (this.#ranked(({ wanted }) => wanted).length === 0) break;
      try {
        await this.#turn();
      } catch (error) {
        // Nobody shall wait for a step that never comes.
        this.failAll(error);
      }
    }
    // In the same task as the look whether anybody waits: who asks from now on begins anew.
    this.#running = false;
  }

  async #turn(): Promise<void> {
    await this.#admit();
    const batch = this.#prepare();
    if (batch.length > 0) await this.#step(batch);
    else await this.#unblock();
  }

  #ranked(which: (task: Task) => boolean): Task[] {
    return [...this.#tasks].filter((task) => !task.ended && which(task)).sort(byRank);
  }

  /** Brings tasks onto the device in their order, until one finds no place. */
  async #admit(): Promise<void> {
    for (const task of this.#ranked(({ wanted, active }) => wanted && !active)) {
      if (task.ended) continue;
      if (!this.#mayEnter(task)) return;
      if (!(await this.#open(task))) return;
    }
  }

  #mayEnter(task: Task): boolean {
    const active = this.#ranked((each) => each.active);
    const working = active.filter(({ wanted }) => wanted);
    const last = working.at(-1);
    if (this.#crowded && last !== undefined && task.priority <= last.priority) return false;
    if (active.length < this.#options.maxActive) return true;
    const victim = chooseVictim(active, task, 'priority');
    if (victim !== undefined) this.#giveWay(victim);
    return victim !== undefined;
  }

  async #open(task: Task): Promise<boolean> {
    for (;;) {
      try {
        if (await task.open()) return true;
      } catch (error) {
        task.fail(error);
      }
      if (task.ended) return true;
      const victim = chooseVictim(this.#tasks, task, 'priority');
      if (victim === undefined) return false;
      this.#giveWay(victim);
    }
  }

  /** Shares the step out and makes room for it, first in rank first. */
  #prepare(): Task[] {
    const tasks = this.#ranked(({ wanted, active }) => wanted && active);
    const shares = shareTokens(tasks, this.#options.maxStepTokens);
    const batch = new Set<Task>();
    tasks.forEach((task, i) => {
      if (shares[i] === 0 || !task.active) return;
      try {
        if (this.#makeRoom(task, shares[i], batch)) batch.add(task);
      } catch (error) {
        task.fail(error);
      }
    });
    return [...batch];
  }

  #makeRoom(task: Task, numTokens: number, batch: Set<Task>): boolean {
    while (!task.prepare(numTokens)) {
      const victim = chooseVictim(this.#tasks, task, 'rank');
      if (victim === undefined) return false;
      batch.delete(victim);
      this.#giveWay(victim);
    }
    return true;
  }

  #giveWay(victim: Task): void {
    this.#crowded = true;
    if (victim.active && this.#options.hasColderTier) {
      this.counts.numSuspensions++;
      victim.suspend();
    } else {
      this.counts.numReleases++;
      victim.release();
    }
  }

  async #step(batch: readonly Task[]): Promise<void> {
    const chunks = batch.map((task) => task.chunks());
    let rows: readonly (readonly Float32Array[])[];
    try {
      const pending = this.#options.run(chunks.flat());
      for (const task of batch) attempt(task, () => task.submitted());
      rows = await pending;
    } catch (error) {
      for (const task of batch) task.fail(error);
      return;
    }
    let at = 0;
    for (const [i, task] of batch.entries()) {
      const own = rows.slice(at, at + chunks[i].length);
      at += chunks[i].length;
      if (!task.ended) attempt(task, () => task.accept(own));
    }
  }

  /**
   * Nobody can move: those with a share of the step may not take pages of those before them, and these have no share, or wait off the
   * device with what they hold. The last in rank gives way, until one is left. If that cannot move, others than tasks hold the pages, or
   * what it has found takes more room than to compute it.
   */
  async #unblock(): Promise<void> {
    const wanted = this.#ranked((task) => task.wanted);
    const needing = wanted.find(({ active }) => active) ?? wanted[0];
    if (needing === undefined) return;
    const holder = wanted.findLast((task) => task !== needing && task.holding);
    if (holder !== undefined) {
      this.#giveWay(holder);
      return;
    }
    if (this.#others.size > 0) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await Promise.race([...this.#others, changed]);
      return;
    }
    if (needing.forgoReuse()) return;
    needing.fail(
      new EngineError(
        'cache-full',
        'the cache has no room for the next tokens of this request now: others hold its pages; try again when they are done, or give the cache more memory',
      ),
    );
  }
}

function attempt(task: Task, action: () => void): void {
  try {
    action();
  } catch (error) {
    task.fail(error);
  }
}
