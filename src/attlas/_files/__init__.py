"""_files"""
