import t from 'tap';
import { askSamples } from '../support/gallery.ts';

t.test('the samples in Rust give the answers all kits give', t => askSamples(t, 'rust'));
