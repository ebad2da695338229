import { useSignal } from '@preact/signals';
import { forget, resize } from '../../state/actions.ts';
import { about, anyRunning, MEMORY_RANGE, reopening } from '../../state/store.ts';
import { bytesText } from '../../story/names.ts';

/** How much memory there is for pages, and whether it remembers anything. */
export function MemoryControls() {
  const settings = about.value?.settings;
  /** While the slider moves. */
  const dragged = useSignal<number | null>(null);
  if (settings === undefined) return null;
  const bytes = dragged.value ?? settings.deviceBytes;
  return (
    <div class="controls">
      <label class="slider">
        <span>
          Device memory <output>{bytesText(bytes)}</output>
        </span>
        <input
          type="range"
          aria-label="Device memory"
          min={about.value?.leastDeviceBytes}
          max={MEMORY_RANGE.most}
          step={MEMORY_RANGE.step}
          value={bytes}
          disabled={reopening.value}
          aria-valuetext={bytesText(bytes)}
          onInput={({ currentTarget }) => {
            dragged.value = Number(currentTarget.value);
          }}
          onChange={({ currentTarget }) => {
            dragged.value = null;
            resize(Number(currentTarget.value));
          }}
        />
      </label>
      <button type="button" class="button small" onClick={forget} disabled={anyRunning.value || reopening.value}>
        Forget everything
      </button>
    </div>
  );
}
