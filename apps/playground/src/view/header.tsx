import { setStepping, step } from '../state/actions.ts';
import { about, anyRunning, phase, stepping } from '../state/store.ts';
import { Switch } from './parts/switch.tsx';
import { nextTheme, themeChoice } from './theme.ts';

const THEME_NAMES = { system: 'Theme: system', dark: 'Theme: dark', light: 'Theme: light' } as const;

/** Name, model, and what holds for the whole page. */
export function Header() {
  const { value: engine } = about;
  return (
    <header class="top">
      {phase.value.name === 'running' && (
        <a class="skip" href="#chat">
          Skip to the conversations
        </a>
      )}
      <div class="brand">
        <img src="./icon.svg" alt="" width="28" height="28" />
        <h1>
          Bufferwise <span>playground</span>
        </h1>
        {engine !== null && (
          <p class="quiet where">
            {engine.model} on {engine.device}
          </p>
        )}
      </div>
      <div class="top-actions">
        {phase.value.name === 'running' && <Pace />}
        <button type="button" class="button" onClick={nextTheme}>
          {THEME_NAMES[themeChoice.value]}
        </button>
      </div>
    </header>
  );
}

function Pace() {
  const { value: on } = stepping;
  return (
    <div class="pace">
      <Switch label="Step by step" on={on} onChange={setStepping} />
      {on && (
        <button type="button" class="button primary" onClick={step} disabled={!anyRunning.value}>
          Next step
        </button>
      )}
    </div>
  );
}
