import { compare, reopen } from '../state/actions.ts';
import { about, comparing, comparisons, reopening, STEP_LENGTHS } from '../state/store.ts';
import { bytesText, plain } from '../story/names.ts';
import { ComparisonView, type Figure } from './parts/comparison-view.tsx';
import { Segments } from './parts/segments.tsx';
import { Switch } from './parts/switch.tsx';

const FIGURES: readonly Figure[] = [
  { name: 'Pages of windows in use at most', of: ({ mostOfWindows }) => mostOfWindows.pages, text: plain, more: false },
  { name: 'Their memory', of: ({ mostOfWindows }) => mostOfWindows.bytes, text: bytesText, more: false },
  { name: 'All memory in use at most', of: ({ mostBytes }) => mostBytes, text: bytesText, more: false },
  { name: 'Found by the second, tokens', of: ({ second }) => second.reusedTokens, text: plain, more: true },
  { name: 'Read by both', of: ({ first, second }) => first.computedTokens + second.computedTokens, text: plain, more: false },
];

const LONGEST_STEP = Math.max(...STEP_LENGTHS);

/** Scratch on and off, and what it saves. */
export function ScratchPanel() {
  const settings = about.value?.settings;
  if (settings === undefined) return null;
  const { scratch, chunkTokens } = settings;
  return (
    <div class="policies">
      <p class="quiet">
        A layer with a <b>sliding window</b> looks back at the last 128 tokens. Where more is read in one step, most of it is
        behind the window again before the step is done. With <b>scratch</b> those blocks have no pages of their own: while a
        layer runs they lie in a few slots, which the next layer uses again.
      </p>
      <Switch
        label="Scratch: blocks that a step leaves behind share slots"
        on={scratch}
        disabled={reopening.value}
        onChange={(on) => reopen({ scratch: on })}
      />
      <div class="row choice-row">
        <span aria-hidden="true">Tokens in a step</span>
        <Segments
          legend="Tokens in a step"
          name="step-length"
          options={STEP_LENGTHS.map(String)}
          value={String(chunkTokens)}
          onChange={(length) => reopen({ chunkTokens: Number(length) })}
        />
      </div>
      <p class="quiet">
        {chunkTokens > STEP_LENGTHS[0]
          ? 'Read something long and look at the map: the tick in the bar of a pool is the most that was in use at a time.'
          : 'Steps of 128 tokens leave nothing behind the window. Longer ones do, and read long texts in fewer steps.'}
      </p>
      <div class="row">
        <button
          type="button"
          class="button primary"
          onClick={() =>
            compare('scratch', { scratch: false, chunkTokens: LONGEST_STEP }, { scratch: true, chunkTokens: LONGEST_STEP })
          }
          disabled={comparing.value || reopening.value}
        >
          {comparisons.scratch.value.state === 'running' ? 'Comparing …' : 'Compare off and on'}
        </button>
      </div>
      <ComparisonView
        shown={comparisons.scratch.value}
        title="Two requests on one long beginning"
        sides={['off', 'on']}
        figures={FIGURES}
        invitation={`“Compare off and on” reads the same long text in two engines, in steps of ${LONGEST_STEP} tokens: one without scratch, one with it.`}
      />
    </div>
  );
}
