import { type Signal, signal } from '@preact/signals';

/** What the person chose; `system` follows the browser. */
export type ThemeChoice = 'system' | 'dark' | 'light';

const KEY = 'bufferwise-theme';
const NEXT: Readonly<Record<ThemeChoice, ThemeChoice>> = { system: 'dark', dark: 'light', light: 'system' };
const prefersLight = matchMedia('(prefers-color-scheme: light)');
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

export const themeChoice: Signal<ThemeChoice> = signal<ThemeChoice>(readChoice());
/** The theme that is shown. */
export const theme: Signal<'dark' | 'light'> = signal<'dark' | 'light'>('dark');
export const lessMotion: Signal<boolean> = signal(reducedMotion.matches);

reducedMotion.addEventListener('change', ({ matches }) => {
  lessMotion.value = matches;
});
prefersLight.addEventListener('change', () => applyTheme());

/** Shows the theme that was chosen. */
export function applyTheme(): void {
  const { value: choice } = themeChoice;
  theme.value = choice === 'system' ? (prefersLight.matches ? 'light' : 'dark') : choice;
  document.documentElement.dataset.theme = theme.value;
}

/** The browser's, dark, light, and around again. */
export function nextTheme(): void {
  themeChoice.value = NEXT[themeChoice.value];
  try {
    localStorage.setItem(KEY, themeChoice.value);
  } catch {
    // A browser that keeps nothing shows the theme for this visit.
  }
  applyTheme();
}

function readChoice(): ThemeChoice {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'dark' || kept === 'light' ? kept : 'system';
  } catch {
    return 'system';
  }
}
