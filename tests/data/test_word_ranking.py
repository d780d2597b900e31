from attlas.data.word_ranking import words_by_frequency


def test_every_word_once_by_frequency_then_alphabet():
    words = ["the", "cat", "and", "the", "dog", "and", "the", "bird"]
    assert words_by_frequency(words) == ("the", "and", "bird", "cat", "dog")
    assert words_by_frequency([]) == ()
