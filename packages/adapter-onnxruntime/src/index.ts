/**
 * Prefix reuse for decoders in ONNX Runtime, out of pages of Bufferwise.
 *
 * @packageDocumentation
 */

// Errors
export { OnnxDecoderError, type OnnxDecoderErrorCode } from './errors.ts';
// What comes out
export { type GenerateOptions, greedy, type Sampler } from './generate.ts';
// For whoever makes the manager
export { onnxCacheLayers } from './model/cache-layers.ts';
// Front door
export { OnnxDecoder, type OnnxDecoderOptions, type OpenOptions } from './onnx-decoder.ts';
export { OnnxSequence } from './onnx-sequence.ts';
export type { OrtModule } from './run/tensors.ts';
