import { readFile } from 'node:fs/promises';
import type { PageConnection } from '@bufferwise/adapter-kit';
import {
  type HybridEngine as Engine,
  type GeneratedToken,
  type GenerationRequest,
  readModel,
  type SamplingOptions,
} from '@bufferwise/hybrid-engine';
import { openGpu } from '@bufferwise-internal/webgpu-node';

export { TransferReceiver, TransferSender } from '@bufferwise/adapter-disaggregation';
export { HybridEngine, modelFingerprint } from '@bufferwise/hybrid-engine';

const files = ['config.json', 'tokenizer.json', 'model.safetensors'].map((name) => readFile(`models/whaler-1m/${name}`));
const [config, tokenizer, weights] = await Promise.all(files);
export const model = readModel({ config, tokenizer, weights });

export const device = await (await openGpu()).requestDevice();
export declare const engine: Engine;
export declare const connection: PageConnection;
export declare const prompt: readonly number[];
export declare const maxNewTokens: number;
export declare const sampling: SamplingOptions;
export declare function checked(request: unknown): GenerationRequest;
export declare function answer(answering: AsyncIterable<GeneratedToken>): Promise<void>;
