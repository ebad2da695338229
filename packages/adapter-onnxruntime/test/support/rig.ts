import { HostPageDevice, KvCacheManager } from '@bufferwise/cache-manager';
import { checkInvariants } from '@bufferwise/cache-manager/testing';
import { defineCacheConfig, type TierConfig } from '@bufferwise/core-policy';
import * as ort from 'onnxruntime-node';
import { expect, onTestFinished } from 'vitest';
import { OnnxDecoder, type OnnxDecoderOptions, type OnnxSequence, onnxCacheLayers } from '../../src/index.ts';
import { type TinyDecoderOptions, tinyDecoder, VOCAB } from '../onnx/tiny-decoder.ts';
import { WatchedSession } from './watched-session.ts';

export const TOKENS_PER_BLOCK = 4;
/** The least that a device has: two thousand blocks of the tiny decoder. */
const DEVICE_BYTES = 2 ** 21;

export interface RigOptions extends TinyDecoderOptions {
  /** Blocks that pages have room for, as another request holds the others. Default: all there are. */
  blocks?: number;
  moreTiers?: readonly TierConfig[];
  options?: Partial<OnnxDecoderOptions>;
  /** Whether the manager looks at everything after every call, instead of at the end. Default true. */
  checked?: boolean;
}

export interface Rig {
  decoder: OnnxDecoder;
  manager: KvCacheManager;
  session: WatchedSession;
  /** Closes everything; nothing may be held then. Comes by itself when the test is over. */
  end(): Promise<void>;
}

const models = new Map<string, Promise<ort.InferenceSession>>();

/** The tiny decoder in ONNX Runtime; one for each set of options, as loading takes longest. */
export function tinySession(options: TinyDecoderOptions = {}): Promise<ort.InferenceSession> {
  const key = JSON.stringify(options);
  const known = models.get(key) ?? ort.InferenceSession.create(tinyDecoder(options), { intraOpNumThreads: 1 });
  models.set(key, known);
  return known;
}

/** A decoder over a manager that checks itself after every call; after the test nothing may be held. */
export async function createRig({ blocks, moreTiers = [], options, checked = true, ...tiny }: RigOptions = {}): Promise<Rig> {
  const session = new WatchedSession(await tinySession(tiny));
  const config = defineCacheConfig({
    tokensPerBlock: TOKENS_PER_BLOCK,
    layers: onnxCacheLayers(session, TOKENS_PER_BLOCK),
    tiers: [{ tier: 'device', quota: DEVICE_BYTES }, ...moreTiers],
    maxUtilForResume: 1,
  });
  const manager = new KvCacheManager({ config, device: new HostPageDevice(), debugChecks: checked });
  const decoder = await OnnxDecoder.create({ session, ort, manager, ...options });
  const others = manager.createKvCache();
  if (blocks !== undefined) {
    await others.resume();
    others.resize((manager.storageStatistics(0)[0].total - blocks) * TOKENS_PER_BLOCK);
  }
  let ending: Promise<void> | undefined;
  const end = async () => {
    await decoder.close();
    others.close();
    checkInvariants(manager);
    await manager.close();
  };
  const rig: Rig = { decoder, manager, session, end: () => (ending ??= end()) };
  onTestFinished(rig.end);
  return rig;
}

/** Runs a whole prompt and leaves it behind for others. @returns the logits of its last token */
export async function leaveBehind({ decoder }: Rig, tokens: readonly number[], scope?: { salt: number }): Promise<Float32Array> {
  const sequence = await decoder.open({ tokens, scope });
  try {
    return await sequence.forward(sequence.rest);
  } finally {
    await sequence.close();
  }
}

/** The logits of the last token of a prompt, computed from nothing. */
export async function coldLogits(tokens: readonly number[], options: RigOptions = {}): Promise<Float32Array> {
  return leaveBehind(await createRig(options), tokens);
}

/** Runs the rest of a prompt. */
export const finishPrompt = (sequence: OnnxSequence): Promise<Float32Array> => sequence.forward(sequence.rest);

/** Tokens that differ from one seed to the next. */
export function someTokens(count: number, seed = 1): number[] {
  return Array.from({ length: count }, (_, i) => (i * 7 + i * i * 3 + seed * 11) % 32);
}

/** Sums in another order differ in their last bits. */
export const ROUNDING = 1e-5;

export function expectClose(actual: Float32Array, expected: Float32Array, tolerance = ROUNDING): void {
  expect(actual.length).toBe(VOCAB);
  for (let i = 0; i < VOCAB; i++) expect(Math.abs(actual[i] - expected[i])).toBeLessThanOrEqual(tolerance);
}
