import type { CacheConfigInput } from '@bufferwise/core-policy';
import { test } from 'vitest';
import { Stage } from './stage.ts';

/** Milliseconds: far more than any story takes, as a busy machine is no failure. */
const TIMEOUT = 60_000;

/** A story on one manager. When it has been told, everything is closed and no slot may be missing. */
export function scenario(sentence: string, config: CacheConfigInput, story: (stage: Stage) => Promise<void>): void {
  test(
    sentence,
    async () => {
      const stage = new Stage(config);
      await story(stage);
      await stage.finish();
    },
    TIMEOUT,
  );
}
