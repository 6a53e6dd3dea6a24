import { testSamples } from '../support/gallery.ts';

testSamples('TypeScript', 'ts');
