/// <reference types="node" />
/**
 * The time to the first token of a prompt that one worker reads and another answers, over TCP on this machine: as it moves, sending what
 * the other lacks of each group; as it would, sending everything; and where the other reads it by itself. And the bytes, group by group. Both
 * workers share one device and one process, so times say how the ways compare, and no more. Reads files below the root of the
 * repository, where it is to be run.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  type ArrivedRequest,
  type GroupTraffic,
  TransferReceiver,
  type TransferReport,
  TransferSender,
} from '@bufferwise/adapter-disaggregation';
import { TcpTransport } from '@bufferwise/adapter-disaggregation/tcp-transport';
import type { PageConnection } from '@bufferwise/adapter-kit';
import { openGpu } from '@bufferwise-internal/webgpu-node';
import { HybridEngine } from '../src/engine/hybrid-engine.ts';
import type { PolicyChoice } from '../src/engine/policy-choice.ts';
import { readGgufModel } from '../src/gguf/gguf-model.ts';
import type { EngineModel } from '../src/model/engine-model.ts';
import { readModel } from '../src/model/model.ts';

export interface MoveFigure {
  model: string;
  policies: string;
  /** What the receiver has of the prompt. */
  receiver: string;
  /** Milliseconds from the request to the first token, by each way. */
  moveMs: number;
  everythingMs: number;
  localMs: number;
  movedKib: number;
  everythingKib: number;
  /** Kibibytes that went of what was lacked, of each group of the receiver's layout. */
  groups: string;
}

export const columns = {
  moveMs: { unit: 'ms', better: 'lower' },
  everythingMs: { unit: 'ms', better: 'lower' },
  localMs: { unit: 'ms', better: 'lower' },
  movedKib: { unit: 'KiB', better: 'lower' },
  everythingKib: { unit: 'KiB', better: 'none' },
} satisfies Partial<Record<keyof MoveFigure, object>>;

const TOKENS_PER_BLOCK = 16;
const CHUNK_TOKENS = 32;
const PROMPT_TOKENS = 250;
const RUNS = 3;
const MODEL = 'the model of the benchmark';

interface Subject {
  readonly name: string;
  readonly model: EngineModel;
  readonly text: readonly number[];
  readonly policies: readonly (readonly [string, PolicyChoice])[];
}

/** What was left with a receiver before the prompt comes: prompts that it answered itself. */
const RECEIVERS: readonly (readonly [string, (prompt: readonly number[]) => readonly number[][]])[] = [
  ['nothing', () => []],
  ['the first half', (prompt) => [prompt.slice(0, PROMPT_TOKENS / 2)]],
  ['all but the last turn', (prompt) => [[...prompt.slice(0, PROMPT_TOKENS - 20), 1, 2, 3]]],
  ['the same prompt', (prompt) => [[...prompt]]],
];

export default async function bench(): Promise<MoveFigure[]> {
  const device = await (await openGpu()).requestDevice({ label: 'move bench' });
  const figures: MoveFigure[] = [];
  for (const subject of [demoModel(), gemma()]) {
    for (const [policies, choice] of subject.policies) {
      const workers = await Workers.open(device, subject, choice);
      const prompt = subject.text.slice(0, PROMPT_TOKENS);
      for (const [receiver, left] of RECEIVERS) {
        const runs = [];
        for (let run = 0; run < RUNS; run++) runs.push(await measure(workers, prompt, left(prompt)));
        const { moved, everything } = runs[0];
        figures.push({
          model: subject.name,
          policies,
          receiver,
          moveMs: median(runs.map((each) => each.moved.ms)),
          everythingMs: median(runs.map((each) => each.everything.ms)),
          localMs: median(runs.map((each) => each.localMs)),
          movedKib: kib(moved.groups),
          everythingKib: kib(everything.groups),
          groups: moved.groups.map(told).join(', '),
        });
      }
      await workers.close();
    }
  }
  device.destroy();
  return figures;
}

interface Moved {
  readonly ms: number;
  readonly groups: readonly GroupTraffic[];
}

/** A prefill and a decode worker, and the wire between them. */
class Workers {
  readonly #engines: readonly [prefill: HybridEngine, decode: HybridEngine];
  readonly #transport = new TcpTransport({ key: randomBytes(16) });
  readonly #sender: TransferSender;
  readonly #receiver: TransferReceiver;
  #connection: PageConnection | null = null;
  #tokens: Uint32Array = new Uint32Array(0);
  #arrived: (request: ArrivedRequest) => void = () => {};
  #generation = 0;

  private constructor(engines: readonly [HybridEngine, HybridEngine]) {
    this.#engines = engines;
    const [prefill, decode] = engines;
    this.#sender = new TransferSender({ ...prefill.transferOptions, modelFingerprint: MODEL });
    this.#receiver = new TransferReceiver({
      ...decode.transferOptions,
      modelFingerprint: MODEL,
      admit: () => ({ tokens: this.#tokens, arrived: (request) => this.#arrived(request) }),
    });
  }

  static async open(device: GPUDevice, { model }: Subject, policies: PolicyChoice): Promise<Workers> {
    const create = () =>
      HybridEngine.create({
        model,
        device,
        chunkTokens: CHUNK_TOKENS,
        cache: { tokensPerBlock: TOKENS_PER_BLOCK, deviceBytes: 32 << 20, policies },
      });
    const workers = new Workers([await create(), await create()]);
    const listener = await workers.#transport.listen();
    workers.#connection = await workers.#transport.connect(listener.address);
    void workers.#receiver.serve(await listener.accept());
    return workers;
  }

  /** Forgets everything on both sides, and has the decode worker answer some prompts. */
  async prepare(left: readonly (readonly number[])[]): Promise<void> {
    for (const { manager } of this.#engines) manager.clearReusableBlocks();
    for (const prompt of left) await this.#engines[1].complete({ prompt, maxNewTokens: 1 });
  }

  async move(prompt: readonly number[]): Promise<Moved> {
    const [prefill, decode] = this.#engines;
    this.#tokens = Uint32Array.from(prompt);
    const coming = new Promise<ArrivedRequest>((resolve) => {
      this.#arrived = resolve;
    });
    const began = performance.now();
    const connection = this.#connection as PageConnection;
    const generation = this.#generation++;
    const reading = prefill.prefillFor({ prompt }, (moving) =>
      this.#sender.send(connection, { ...moving, request: 'the prompt', generation }),
    );
    const answer = decode.continueFrom(await coming, { prompt, maxNewTokens: 1 });
    await answer.next();
    const ms = performance.now() - began;
    await answer.return(undefined as never);
    const { transfer }: { transfer: TransferReport } = await reading;
    return { ms, groups: transfer.groups };
  }

  async local(prompt: readonly number[]): Promise<number> {
    const { report } = await this.#engines[1].complete({ prompt, maxNewTokens: 1 });
    return report.timeToFirstTokenMs;
  }

  async close(): Promise<void> {
    this.#sender.close();
    this.#receiver.close();
    await this.#transport.close();
    for (const engine of this.#engines) await engine.close();
  }
}

async function measure(workers: Workers, prompt: readonly number[], left: readonly (readonly number[])[]) {
  await workers.prepare(left);
  const moved = await workers.move(prompt);
  await workers.prepare([]);
  const everything = await workers.move(prompt);
  await workers.prepare(left);
  return { moved, everything, localMs: await workers.local(prompt) };
}

function demoModel(): Subject {
  const file = (name: string) => readFileSync(`models/whaler-1m/${name}`);
  const model = readModel({
    config: file('config.json'),
    tokenizer: file('tokenizer.json'),
    weights: file('model.safetensors'),
  });
  const { prompts } = JSON.parse(file('expected.json').toString()) as { prompts: { name: string; ids: number[] }[] };
  const text = prompts.flatMap(({ name, ids }) => (name === 'long' ? ids : []));
  const policies = [
    ['all required', {}],
    ['state optional', { ssm_state: 'optional', conv_state: 'optional' }],
  ] as const;
  return { name: 'whaler', model, text, policies };
}

function gemma(): Subject {
  const file = (name: string) => readFileSync(`internal/test-kit/oracle-models/gemma3-101.${name}`);
  const { prompts } = JSON.parse(file('expected.json').toString()) as { prompts: { prompt: number[] }[] };
  const model = readGgufModel(file('gguf'));
  const text = prompts.flatMap(({ prompt }) => prompt).slice(-300);
  return { name: 'gemma3', model, text, policies: [['all required', {}]] };
}

function told({ lifecycle, bytesMoved, bytesLacked }: GroupTraffic): string {
  const name = lifecycle.kind === 'ssm' ? 'state' : lifecycle.windowSize === null ? 'full' : `window ${lifecycle.windowSize}`;
  return `${name} ${bytesMoved / 1024}/${bytesLacked / 1024}`;
}

function kib(groups: readonly GroupTraffic[]): number {
  return groups.reduce((sum, { bytesMoved }) => sum + bytesMoved, 0) / 1024;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}
