import type { CacheConfigInput } from '@bufferwise/core-policy';
import { test } from 'vitest';
import { Stage } from './stage.ts';

/** A story on one manager. When it has been told, everything is closed and no slot may be missing. */
export function scenario(sentence: string, config: CacheConfigInput, story: (stage: Stage) => Promise<void>): void {
  test(sentence, async () => {
    const stage = new Stage(config);
    await story(stage);
    await stage.finish();
  });
}
