import type { TransferReport } from '@bufferwise/adapter-disaggregation';
import type { Lifecycle } from '@bufferwise/core-policy';
import { Counter, type Registry } from 'prom-client';

/** Which way a prompt went. */
export type MoveDirection = 'in' | 'out';

/**
 * How a prompt came that could be read elsewhere: `moved`; else it was read here, as there was no worker for it, NATS was away, nobody had room or read it in
 * time, the only worker with room was this one; or its client had left.
 */
export type MoveOutcome = 'moved' | 'no-worker' | 'control-lost' | 'refused' | 'failed' | 'timeout' | 'alone' | 'client-left';

/** What a server counts of prompts that move. */
export class MoveFigures {
  readonly #moves = counter('prompt_moves_total', 'Prompts that could be read elsewhere, by what became of that', ['outcome']);
  readonly #retries = counter('prompt_move_retries_total', 'Tries beyond the first to have a prompt read elsewhere', []);
  readonly #jobs = counter('prefill_jobs_total', 'Prompts read for others, by how their moves ended', ['outcome']);
  readonly #tokens = counter('prefill_tokens_total', 'Tokens of prompts read for others', ['from']);
  readonly #moved = counter('moved_bytes_total', 'Bytes of pages that went or came', ['direction', 'group']);
  readonly #lacked = counter('lacked_bytes_total', 'Bytes of pages that the receiving worker did not have', [
    'direction',
    'group',
  ]);

  addTo(registry: Registry): void {
    for (const each of [this.#moves, this.#retries, this.#jobs, this.#tokens, this.#moved, this.#lacked])
      registry.registerMetric(each as Counter);
  }

  onMove(outcome: MoveOutcome): void {
    this.#moves.inc({ outcome });
  }

  onRetry(): void {
    this.#retries.inc();
  }

  /** @param outcome `failed` where it did not come to a move */
  onPrefill(outcome: TransferReport['outcome']['kind'] | 'failed'): void {
    this.#jobs.inc({ outcome });
  }

  onRead({ reusedTokens, computedTokens }: { readonly reusedTokens: number; readonly computedTokens: number }): void {
    this.#tokens.inc({ from: 'cache' }, reusedTokens);
    this.#tokens.inc({ from: 'model' }, computedTokens);
  }

  onTraffic(direction: MoveDirection, { groups }: TransferReport): void {
    for (const { lifecycle, bytesLacked, bytesMoved } of groups) {
      const group = nameOf(lifecycle);
      this.#moved.inc({ direction, group }, bytesMoved);
      this.#lacked.inc({ direction, group }, bytesLacked);
    }
  }
}

/** A group in the words of its lifecycle: both sides have the same, whatever the numbers of their groups. */
function nameOf(lifecycle: Lifecycle): string {
  const { policy } = lifecycle;
  if (lifecycle.kind === 'ssm') return `state, ${policy}`;
  return `${lifecycle.windowSize === null ? 'full' : `window ${lifecycle.windowSize}`}, ${policy}`;
}

function counter<T extends string>(name: string, help: string, labelNames: readonly T[]): Counter<T> {
  return new Counter({ name: `bufferwise_${name}`, help, labelNames: [...labelNames], registers: [] });
}
