import type { FinishReason } from '../answer/answer-prompt.ts';
import type { TextPiece } from '../answer/answer-text.ts';

/** How a route words its answers. */
export interface AnswerFormat {
  /** Name of the kind of a whole answer, and of a piece of a stream. */
  readonly object: string;
  readonly chunkObject: string;
  /** What was asked for, in the words of traces. */
  readonly operation: 'chat' | 'text_completion';
  head(of: { readonly uuid: string; readonly created: number; readonly model: string }): object;
  /** A whole answer. */
  choice(index: number, whole: TextPiece, finishReason: FinishReason): object;
  /** What a stream says of a choice before its first piece; null for nothing. */
  opening(index: number): object | null;
  delta(index: number, piece: TextPiece): object;
  closing(index: number, finishReason: FinishReason): object;
}
