import { BufferwiseError } from '@bufferwise/core-policy';

/** What an ONNX decoder refuses, or what failed below it. Stable within a major version. */
export type OnnxDecoderErrorCode = 'onnx-model' | 'onnx-options' | 'onnx-tokens' | 'onnx-run' | 'onnx-output';

/** An ONNX model, an option or a run that a decoder can do nothing with. What was called has changed nothing, unless the message says more. */
export class OnnxDecoderError extends BufferwiseError {
  declare readonly code: OnnxDecoderErrorCode;
  /** The input or output of the model that it is about; null when it is about none. */
  readonly valueName: string | null;

  /** @param message what was wrong, where, and the way out */
  constructor(code: OnnxDecoderErrorCode, message: string, options: { valueName?: string; cause?: unknown } = {}) {
    super(code, message, options.cause === undefined ? undefined : { cause: options.cause });
    this.valueName = options.valueName ?? null;
  }
}
