import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextTask } from '../engine/next-task.ts';
import { Scheduler } from './scheduler.ts';
import type { Task } from './task.ts';

/** Memory as the scheduler meets it: pages on the device, some of them nobody's and worth keeping, and room beside it. */
class Memory {
  readonly total: number;
  free: number;
  /** Published pages that nobody holds: found by whoever looks, and gone when room is needed. */
  evictable = 0;
  hostFree: number;

  constructor(total: number, host: number) {
    this.total = total;
    this.free = total;
    this.hostFree = host;
  }

  take(pages: number): boolean {
    if (pages > this.free + this.evictable) return false;
    const evicted = Math.max(0, pages - this.free);
    this.evictable -= evicted;
    this.free += evicted - pages;
    return true;
  }
}

interface Plan {
  prompt: number;
  answer: number;
  priority: number;
  /** Pages of its prompt that it finds if they are there. */
  finds: number;
  /** Turns of the event loop between a token and the wish for the next, token by token. */
  pauses: number[];
}

async function turnsOf(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTask();
}

/** A request whose every token is a page. */
class PagedRequest implements Task {
  readonly arrival: number;
  ended = false;
  active = false;
  error: unknown;
  tokens = 0;
  readonly #memory: Memory;
  readonly #plan: Plan;
  readonly #scheduler: () => Scheduler;
  #reader: (() => void) | null = null;
  #mayFind = true;
  /** Pages on the device, and those of it in host memory. */
  #pages = 0;
  #hosted = 0;
  #claims = 0;
  #prepared = 0;

  constructor(memory: Memory, plan: Plan, arrival: number, scheduler: () => Scheduler) {
    this.#memory = memory;
    this.#plan = plan;
    this.arrival = arrival;
    this.#scheduler = scheduler;
  }

  get priority(): number {
    return this.#plan.priority;
  }

  get wanted(): boolean {
    return this.#reader !== null;
  }

  get holding(): boolean {
    return this.#pages + this.#hosted + this.#claims > 0;
  }

  get decoding(): boolean {
    return this.active && this.#missing === 1;
  }

  get #missing(): number {
    return this.#plan.prompt + this.tokens - this.#pages;
  }

  async read(): Promise<void> {
    for (const pause of [...this.#plan.pauses, ...new Array<number>(this.#plan.answer).fill(0)].slice(0, this.#plan.answer)) {
      await turnsOf(pause);
      await new Promise<void>((resolve) => {
        this.#reader = resolve;
        this.#scheduler().ask(this);
      });
      if (this.error !== undefined) return;
    }
    this.end();
  }

  async open(): Promise<boolean> {
    const memory = this.#memory;
    if (!this.holding && this.#mayFind) {
      this.#claims = Math.min(this.#plan.finds, this.#plan.prompt - 1, memory.evictable);
      memory.evictable -= this.#claims;
    }
    await Promise.resolve();
    // The last page that was found is copied before it is written.
    if (!memory.take(this.#hosted + (this.#claims > 0 ? 1 : 0))) return false;
    memory.hostFree += this.#hosted;
    if (this.#claims > 0) memory.evictable++;
    this.#pages += this.#hosted + this.#claims;
    this.#hosted = 0;
    this.#claims = 0;
    this.active = true;
    return true;
  }

  nextTokens(most: number): number {
    return Math.min(most, this.#missing);
  }

  prepare(numTokens: number): boolean {
    if (!this.#memory.take(numTokens)) return false;
    // What an earlier step took and did not use.
    this.#memory.free += this.#prepared;
    this.#prepared = numTokens;
    return true;
  }

  chunks() {
    return [{ tokens: new Uint32Array(this.#prepared) }] as unknown as ReturnType<Task['chunks']>;
  }

  submitted(): void {
    this.#pages += this.#prepared;
    this.#prepared = 0;
  }

  accept(): void {
    if (this.#missing > 0) return;
    this.tokens++;
    this.#wake();
  }

  suspend(): void {
    this.active = false;
    this.#drop();
    this.#hosted = Math.min(this.#pages, this.#memory.hostFree);
    this.#memory.hostFree -= this.#hosted;
    this.#memory.free += this.#hosted;
    this.#pages -= this.#hosted;
  }

  release(): void {
    this.active = false;
    this.#drop();
    this.#memory.evictable += this.#pages + this.#claims;
    this.#memory.hostFree += this.#hosted;
    this.#pages = 0;
    this.#hosted = 0;
    this.#claims = 0;
  }

  forgoReuse(): boolean {
    if (this.active || !this.#mayFind) return false;
    this.#mayFind = false;
    this.release();
    return true;
  }

  fail(error: unknown): void {
    this.error = error;
    this.end();
  }

  end(): void {
    if (this.ended) return;
    this.release();
    this.ended = true;
    this.#scheduler().remove(this);
    this.#wake();
  }

  #drop(): void {
    this.#memory.free += this.#prepared;
    this.#prepared = 0;
  }

  #wake(): void {
    this.#reader?.();
    this.#reader = null;
  }
}

const TOTAL = 12;
const anyPlan = fc.record({
  prompt: fc.integer({ min: 1, max: 8 }),
  answer: fc.integer({ min: 1, max: 4 }),
  priority: fc.constantFrom(0, 0, 0, 1, 2),
  finds: fc.nat(8),
  pauses: fc.array(fc.nat(12), { maxLength: 4 }),
});

describe('whatever comes, and whoever waits for what,', () => {
  it('every request that fits alone is answered, no step is too large, and all memory comes back', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(anyPlan, fc.nat(10)), { minLength: 1, maxLength: 6 }),
        fc.constantFrom(0, 0, 3, 8, 40),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 9 }),
        fc.array(fc.record({ pages: fc.nat(5), turns: fc.nat(40) }), { maxLength: 2 }),
        async (plans, host, maxActive, maxStepTokens, holders) => {
          const memory = new Memory(TOTAL, host);
          let numSteps = 0;
          const scheduler = new Scheduler({
            maxActive,
            maxStepTokens,
            hasColderTier: host > 0,
            run: async (chunks) => {
              const numTokens = chunks.reduce((sum, { tokens }) => sum + tokens.length, 0);
              expect(numTokens).toBeGreaterThan(0);
              expect(numTokens).toBeLessThanOrEqual(maxStepTokens);
              expect(chunks.length).toBeLessThanOrEqual(maxActive);
              if (++numSteps > 3000) throw new Error('it never ends');
              return chunks.map(() => []);
            },
          });
          const requests = plans.map(([plan], arrival) => new PagedRequest(memory, plan, arrival, () => scheduler));
          const others = holders.map(async ({ pages, turns }) => {
            memory.free -= pages;
            await turnsOf(turns);
            memory.free += pages;
          });
          for (const other of others) scheduler.waitFor(other);
          await Promise.all([
            ...others,
            ...requests.map(async (request, i) => {
              await turnsOf(plans[i][1]);
              await request.read();
            }),
          ]);
          for (const [i, { error, tokens }] of requests.entries()) {
            expect(error).toBeUndefined();
            expect(tokens).toBe(plans[i][0].answer);
          }
          expect([memory.free + memory.evictable, memory.hostFree]).toEqual([TOTAL, host]);
        },
      ),
      { numRuns: Number(process.env.BUFFERWISE_PROPERTY_RUNS ?? 500) },
    );
  });
});

it('who waits behind one that waits for others goes on when that one is given up', async () => {
  const memory = new Memory(TOTAL, 0);
  const scheduler = new Scheduler({
    maxActive: 2,
    maxStepTokens: 9,
    hasColderTier: false,
    run: async (chunks) => chunks.map(() => []),
  });
  const plan = { answer: 2, priority: 0, finds: 0, pauses: [] };
  const [first, second] = [8, 5].map(
    (prompt, arrival) => new PagedRequest(memory, { ...plan, prompt }, arrival, () => scheduler),
  );
  memory.free -= 4;
  scheduler.waitFor(new Promise(() => {}));
  const all = Promise.all([first.read(), second.read()]);
  await turnsOf(20);
  // All that the others leave is the first one's, whose second token has no room.
  expect([first.tokens, second.tokens]).toEqual([1, 0]);
  first.fail(new Error('its client left'));
  await all;
  expect([second.tokens, second.error]).toEqual([2, undefined]);
});
