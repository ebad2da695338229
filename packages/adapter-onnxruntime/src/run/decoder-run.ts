import type { InferenceSession, Tensor } from 'onnxruntime-common';
import { OnnxDecoderError } from '../errors.ts';
import type { DecoderModel } from '../model/decoder-model.ts';
import { floatsOfHalves } from './half.ts';
import { int64Tensor, type OrtModule, tensorBytes } from './tensors.ts';

/** One model in one runtime. */
export interface DecoderRuntime {
  readonly session: Pick<InferenceSession, 'run'>;
  readonly ort: OrtModule;
  readonly model: DecoderModel;
}

/** Keys and values of the tokens so far, by the names of the inputs. */
export interface Past {
  readonly tensors: ReadonlyMap<string, Tensor>;
  /** Tokens. */
  readonly length: number;
}

/** What a run gives: logits of its last token, and what is past then. */
export interface RunResult {
  readonly logits: Float32Array;
  readonly past: Past;
}

/**
 * Runs tokens behind a past. The past given is still there afterwards, and the caller's, as is the new one.
 *
 * @throws {OnnxDecoderError} `onnx-run` when the runtime fails, `onnx-output` when it answers with something else than its metadata says
 */
export async function runDecoder(runtime: DecoderRuntime, past: Past, tokens: Uint32Array): Promise<RunResult> {
  const { session, model } = runtime;
  const inputs = inputTensors(runtime, past.length, tokens);
  let outputs: Record<string, Tensor>;
  try {
    const names = ['logits', ...model.kvTensors.map(({ present }) => present)];
    outputs = (await session.run({ ...inputs, ...Object.fromEntries(past.tensors) }, names)) as Record<string, Tensor>;
  } catch (cause) {
    throw new OnnxDecoderError('onnx-run', `running ${tokens.length} tokens behind ${past.length} failed; see cause`, { cause });
  } finally {
    for (const tensor of Object.values(inputs)) tensor.dispose();
  }
  try {
    const result = {
      logits: await lastLogits(outputs.logits),
      past: presentAsPast(model, outputs, past.length + tokens.length),
    };
    outputs.logits.dispose();
    return result;
  } catch (error) {
    for (const tensor of Object.values(outputs)) tensor.dispose();
    throw error;
  }
}

/** All inputs but keys and values. */
function inputTensors({ ort, model }: DecoderRuntime, start: number, tokens: Uint32Array): Record<string, Tensor> {
  const count = tokens.length;
  const inputs: Record<string, Tensor> = { input_ids: int64Tensor(ort, tokens, [1, count]) };
  if (model.takesMask) inputs.attention_mask = int64Tensor(ort, new Uint8Array(start + count).fill(1), [1, start + count]);
  if (model.takesPositions)
    inputs.position_ids = int64Tensor(
      ort,
      tokens.map((_, i) => start + i),
      [1, count],
    );
  if (model.takesCacheBranch) inputs.use_cache_branch = new ort.Tensor('bool', Uint8Array.of(start > 0 ? 1 : 0), [1]);
  if (model.numLogitsRank !== null) inputs.num_logits_to_keep = int64Tensor(ort, [1], model.numLogitsRank === 0 ? [] : [1]);
  return inputs;
}

function presentAsPast({ kvTensors }: DecoderModel, outputs: Record<string, Tensor>, length: number): Past {
  const tensors = kvTensors.map(({ past, present, numKvHeads, headDim }): [string, Tensor] => {
    const { dims } = outputs[present];
    const expected = [1, numKvHeads, length, headDim];
    if (dims.length !== 4 || expected.some((size, i) => dims[i] !== size))
      throw new OnnxDecoderError(
        'onnx-output',
        `${present} is [${dims.join(', ')}] after ${length} tokens; [${expected.join(', ')}] is read: the past with the new rows behind it`,
        { valueName: present },
      );
    return [past, outputs[present]];
  });
  return { tensors: new Map(tensors), length };
}

/** Of `[1, tokens, vocabulary]` the last row; the array is the caller's. */
async function lastLogits(tensor: Tensor): Promise<Float32Array> {
  const vocabSize = tensor.dims[tensor.dims.length - 1];
  const bytes = await tensorBytes(tensor);
  const end = bytes.byteOffset + bytes.byteLength;
  if (tensor.type === 'float16') return floatsOfHalves(new Uint16Array(bytes.buffer, end - 2 * vocabSize, vocabSize));
  return new Float32Array(bytes.buffer, end - 4 * vocabSize, vocabSize).slice();
}
