import { expect } from 'vitest';
import { scenario } from '../support/scenario.ts';
import { full, model, seq, windowed } from '../support/stage.ts';

scenario(
  'a request lists its own page again when the twin that had taken its place is lost too',
  model([full(), windowed(100)]),
  async (stage) => {
    const owner = await stage.start();
    expect(owner.extend(seq(8))).toBe(true);
    stage.drop(1, seq(8), 0);
    await stage.donate(seq(8), [8]);
    expect(owner.extend([8])).toBe(true);
    stage.drop(1, seq(8), 0);
    expect(stage.probe(seq(8))).toBe(0);
    expect(owner.extend([9])).toBe(true);
    expect(stage.probe(seq(8))).toBe(8);
  },
);
